//! Which addresses may be connected to.
//!
//! A service in the cluster has a private address, so private networks are
//! ordinary. What belongs to the machine itself, to the link, or to the cloud that
//! the machine runs in is not: whoever reaches it speaks as the machine. It takes a
//! grant that names the network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network in CIDR form, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

/// A text that names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network such as `10.0.0.0/8` and no address")]
pub struct NotANetwork(String);

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let error = || NotANetwork(text.to_owned());
        let (base, bits) = match text.split_once('/') {
            Some((base, bits)) => (base, Some(bits)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| error())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().map_err(|_| error())?,
            None => most,
        };
        if bits > most {
            return Err(error());
        }
        Ok(Self { base, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Network {
    /// Whether an address is of this network. An IPv4 address that is written as an
    /// IPv6 one counts as what it stands for.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, plain(address)) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits);
                same_above(base.to_bits().into(), address.to_bits().into(), shift)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits);
                same_above(base.to_bits(), address.to_bits(), shift)
            }
            _ => false,
        }
    }
}

fn same_above(a: u128, b: u128, shift: u32) -> bool {
    (a ^ b).checked_shr(shift).unwrap_or(0) == 0
}

/// The networks that one grant reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Just these; all ordinary addresses when there are none.
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whether this address of a host may be connected to. A host that is itself
    /// written as an address names it, which is as good as a grant of it.
    ///
    /// # Errors
    ///
    /// When it may not; the error says what it is.
    pub fn check(&self, host: &str, address: IpAddr) -> Result<(), AddressRefused> {
        let refused = |kind| {
            Err(AddressRefused {
                host: host.to_owned(),
                address,
                kind,
            })
        };
        if !self.0.is_empty() {
            return match self.0.iter().any(|network| network.contains(address)) {
                true => Ok(()),
                false => refused("not in the networks that are granted"),
            };
        }
        if literal(host) == Some(address) {
            return Ok(());
        }
        match special(address) {
            Some(kind) => refused(kind),
            None => Ok(()),
        }
    }
}

/// A host that is an address, which may stand in brackets.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// An address that may not be connected to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{host} has the address {address}, which is {kind}; if it is meant, name its network in `addresses` of the grant"
)]
pub struct AddressRefused {
    /// The host.
    pub host: String,
    /// One of its addresses.
    pub address: IpAddr,
    /// What is special about it.
    pub kind: &'static str,
}

/// Addresses at which clouds tell a machine about itself, outside of the link-local
/// network: those of Azure's WireServer, of Alibaba, of EC2 and of EKS Pod Identity
/// over IPv6, and of Google's over IPv6.
const METADATA: [IpAddr; 5] = [
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// What is special about an address; nothing about an ordinary one.
fn special(address: IpAddr) -> Option<&'static str> {
    let address = plain(address);
    if METADATA.contains(&address) {
        return Some("a cloud's metadata service");
    }
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [first, ..] = address.octets();
    Some(match address {
        _ if address.is_loopback() => "a loopback address",
        _ if address.is_link_local() => "a link-local address",
        _ if first == 0 => "an address of this machine",
        _ if address.is_broadcast() || address.is_multicast() => "a multicast address",
        // 240.0.0.0/4 is reserved (RFC 1112).
        _ if first >= 240 => "a reserved address",
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    Some(match address {
        _ if address.is_loopback() => "a loopback address",
        _ if address.is_unspecified() => "an address of this machine",
        _ if address.is_multicast() => "a multicast address",
        // fe80::/10, and its forerunner fec0::/10 (RFC 3879).
        _ if address.segments()[0] & 0xff80 == 0xfe80 => "a link-local address",
        _ => return special(IpAddr::V4(embedded(address)?)),
    })
}

/// The IPv4 address to which a gateway would pass this on: NAT64 (RFC 6052) and 6to4
/// (RFC 3056).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        // The deprecated form in which the upper bits are zero (RFC 4291).
        [0, 0, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

/// An IPv4 address in its own form.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(networks: &[&str], host: &str, address: &str, expected: Option<&str>) {
        let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
        let found = Networks::new(networks).check(host, address.parse().unwrap());
        let found = found.err().map(|refused| refused.kind);
        assert_eq!(found, expected, "{host} {address}");
    }

    #[test]
    fn what_speaks_as_the_machine_takes_a_grant() {
        for (address, expected) in [
            ("93.184.216.34", None),
            ("10.0.0.1", None),
            ("192.168.1.1", None),
            ("100.64.0.1", None),
            ("2606:4700::1", None),
            ("fd12::1", None),
            ("127.0.0.1", Some("a loopback address")),
            ("127.255.255.254", Some("a loopback address")),
            ("::1", Some("a loopback address")),
            ("::ffff:127.0.0.1", Some("a loopback address")),
            ("64:ff9b::7f00:1", Some("a loopback address")),
            ("2002:7f00:1::", Some("a loopback address")),
            ("::127.0.0.1", Some("a loopback address")),
            ("0.0.0.0", Some("an address of this machine")),
            ("::", Some("an address of this machine")),
            ("169.254.169.254", Some("a link-local address")),
            ("::ffff:169.254.169.254", Some("a link-local address")),
            ("fe80::1", Some("a link-local address")),
            ("168.63.129.16", Some("a cloud's metadata service")),
            ("100.100.100.200", Some("a cloud's metadata service")),
            ("fd00:ec2::254", Some("a cloud's metadata service")),
            ("224.0.0.1", Some("a multicast address")),
            ("ff02::1", Some("a multicast address")),
            ("255.255.255.255", Some("a multicast address")),
            ("240.0.0.1", Some("a reserved address")),
        ] {
            check(&[], "example.com", address, expected);
        }
    }

    #[test]
    fn a_grant_of_networks_is_exact() {
        let outside = Some("not in the networks that are granted");
        for (networks, host, address, expected) in [
            (vec!["127.0.0.0/8"], "a.example", "127.0.0.1", None),
            (vec!["127.0.0.0/8"], "a.example", "93.184.216.34", outside),
            (vec!["10.1.0.0/16"], "a.example", "10.2.0.1", outside),
            (vec!["10.1.0.0/16", "::1"], "a.example", "::1", None),
            (vec!["0.0.0.0/0"], "a.example", "::1", outside),
            (vec!["10.1.0.0/16"], "10.2.0.1", "10.2.0.1", outside),
            (vec![], "127.0.0.1", "127.0.0.1", None),
            (vec![], "[::1]", "::1", None),
        ] {
            check(&networks, host, address, expected);
        }
    }

    #[test]
    fn networks_are_read_strictly() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "a.example",
            "1.2.3.4/-1",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        assert_eq!(
            "10.0.0.0/8".parse::<Network>().unwrap().to_string(),
            "10.0.0.0/8"
        );
    }
}

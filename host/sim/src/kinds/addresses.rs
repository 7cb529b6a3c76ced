//! Addresses and ranges of them, as strictly as the real server reads them
//! (`StrictIPCIDRValidation`).

use std::net::IpAddr;

use crate::field::{Errors, FieldError, Path};
use crate::names;

/// Checks an address. Says whether it is one.
pub(super) fn validate_ip(path: &Path<'_>, text: &str, errors: &mut Errors) -> bool {
    let wrong = match text.parse::<IpAddr>() {
        Ok(ip) if is_mapped(ip) => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return true,
        Err(_) if without_zeros(text).parse::<IpAddr>().is_ok() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    errors.push(FieldError::invalid_str(path, text, wrong));
    false
}

/// Checks a range of addresses. Says whether it is one.
pub(super) fn validate_range(path: &Path<'_>, text: &str, errors: &mut Errors) -> bool {
    let wrong = match range(text) {
        Some((ip, _)) if is_mapped(ip) => "must not have an IPv4-mapped IPv6 address",
        Some((ip, prefix)) if has_bits_beyond(ip, prefix) => {
            "must not have bits set beyond the prefix length"
        }
        Some(_) => return true,
        None if range(&without_zeros(text)).is_some() => {
            "must not have leading 0s in IP or prefix length"
        }
        None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
    };
    errors.push(FieldError::invalid_str(path, text, wrong));
    false
}

/// Checks the name of a host, where there is one: an address is none.
pub(super) fn validate_hostname(path: &Path<'_>, host: &str, errors: &mut Errors) {
    if host.is_empty() {
        return;
    }
    for wrong in names::dns1123_subdomain(host) {
        errors.push(FieldError::invalid_str(path, host, wrong));
    }
    if host.parse::<IpAddr>().is_ok() {
        let why = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid_str(path, host, why));
    }
}

/// Refuses an address that leads to nobody, or to whoever asks, as `validate_ip` found it.
pub(super) fn validate_reachable(path: &Path<'_>, text: &str, errors: &mut Errors) {
    let wrong = match text.parse::<IpAddr>() {
        Err(_) => "must be a valid IP address".to_owned(),
        Ok(ip) if ip.is_unspecified() => format!("may not be unspecified ({text})"),
        Ok(ip) if ip.is_loopback() => {
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
        }
        Ok(IpAddr::V4(ip)) if ip.is_link_local() => LINK_LOCAL.to_owned(),
        Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => LINK_LOCAL.to_owned(),
        Ok(IpAddr::V4(ip)) if ip.octets().starts_with(&[224, 0, 0]) => LINK_LOCAL_GROUP.to_owned(),
        Ok(IpAddr::V6(ip)) if ip.octets().starts_with(&[0xff, 0x02]) => LINK_LOCAL_GROUP.to_owned(),
        Ok(_) => return,
    };
    errors.push(FieldError::invalid_str(path, text, wrong));
}

const LINK_LOCAL: &str = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
const LINK_LOCAL_GROUP: &str =
    "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";

fn range(text: &str) -> Option<(IpAddr, u32)> {
    let (ip, length) = text.split_once('/')?;
    let is_plain = length == "0" || !length.starts_with(['0', '+']);
    let length: u32 = length.parse().ok().filter(|_| is_plain)?;
    let ip: IpAddr = ip.parse().ok()?;
    let width = if ip.is_ipv4() { 32 } else { 128 };
    (length <= width).then_some((ip, length))
}

fn has_bits_beyond(ip: IpAddr, prefix: u32) -> bool {
    match ip {
        IpAddr::V4(ip) => u32::MAX.checked_shr(prefix).unwrap_or(0) & u32::from(ip) != 0,
        IpAddr::V6(ip) => u128::MAX.checked_shr(prefix).unwrap_or(0) & u128::from(ip) != 0,
    }
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// The text with numbers of IPv4 as they should be written.
fn without_zeros(text: &str) -> String {
    let number = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        short => short.to_owned(),
    };
    let (ip, length) = text
        .split_once('/')
        .map_or((text, None), |(ip, l)| (ip, Some(l)));
    let ip = if ip.contains(':') {
        ip.to_owned()
    } else {
        ip.split('.').map(number).collect::<Vec<_>>().join(".")
    };
    match length {
        Some(length) => format!("{ip}/{}", number(length)),
        None => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, validate: fn(&Path<'_>, &str, &mut Errors) -> bool, wrong: &str) {
        let mut errors = Errors::new();
        let fits = validate(&Path::new("x"), text, &mut errors);
        assert_eq!(fits, wrong.is_empty(), "{text}");
        let found = errors.aggregate();
        assert_eq!(fits, errors.is_empty(), "{text}: {found}");
        assert!(found.contains(wrong), "{text}: {found}");
    }

    #[test]
    fn addresses_are_read_strictly() {
        check("10.0.0.1", validate_ip, "");
        check("fe80::1", validate_ip, "");
        check("010.0.0.1", validate_ip, "must not have leading 0s");
        check(
            "::ffff:1.2.3.4",
            validate_ip,
            "must not be an IPv4-mapped IPv6 address",
        );
        check("x", validate_ip, "must be a valid IP address");
        check("", validate_ip, "must be a valid IP address");
        check("10.0.0.0/8", validate_range, "");
        check("0.0.0.0/0", validate_range, "");
        check("::/0", validate_range, "");
        check("10.0.0.1/32", validate_range, "");
        check(
            "10.0.0.5/8",
            validate_range,
            "must not have bits set beyond the prefix length",
        );
        check(
            "2001:db8::1/64",
            validate_range,
            "must not have bits set beyond",
        );
        check(
            "10.0.0.0/08",
            validate_range,
            "must not have leading 0s in IP or prefix length",
        );
        check(
            "::ffff:1.2.3.4/128",
            validate_range,
            "must not have an IPv4-mapped IPv6 address",
        );
        for text in ["x", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/"] {
            check(text, validate_range, "must be a valid CIDR value");
        }
    }
}

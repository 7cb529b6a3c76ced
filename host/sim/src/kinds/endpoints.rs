//! The addresses and ports behind Services, as Endpoints and as slices.

use std::net::IpAddr;

use serde_json::Value;

use super::edit::{integer, items, present, text};
use super::pod_validation::supported;
use crate::field::{Errors, FieldError, Path};
use crate::names;

/// Checks Endpoints.
pub(super) fn validate(endpoints: &Value, errors: &mut Errors) {
    let list = Path::new("subsets");
    for (index, subset) in items(endpoints, "subsets").enumerate() {
        let path = list.index(index);
        let fields = ["addresses", "notReadyAddresses"];
        if fields.iter().all(|field| present(subset, field).is_none()) {
            errors.push(FieldError::required(
                &path,
                "must specify `addresses` or `notReadyAddresses`",
            ));
        }
        for field in fields {
            let list = path.child(field);
            for (index, address) in items(subset, field).enumerate() {
                let path = list.index(index);
                let ip = text(address, "ip");
                if ip.parse::<IpAddr>().is_err() {
                    errors.push(FieldError::invalid_str(
                        &path.child("ip"),
                        ip,
                        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                    ));
                }
                let host = text(address, "hostname");
                if !host.is_empty() {
                    for wrong in names::dns1123_label(host) {
                        errors.push(FieldError::invalid_str(
                            &path.child("hostname"),
                            host,
                            wrong,
                        ));
                    }
                }
                validate_reachable(&path.child("ip"), ip, errors);
            }
        }
        let several = items(subset, "ports").count() > 1;
        let list = path.child("ports");
        for (index, port) in items(subset, "ports").enumerate() {
            validate_port(&list.index(index), port, several, errors);
        }
    }
}

fn validate_port(path: &Path<'_>, port: &Value, named: bool, errors: &mut Errors) {
    let name = text(port, "name");
    if name.is_empty() {
        if named {
            errors.push(FieldError::required(&path.child("name"), ""));
        }
    } else {
        for wrong in names::dns1123_label(name) {
            errors.push(FieldError::invalid_str(&path.child("name"), name, wrong));
        }
    }
    let number = integer(port, "port").unwrap_or(0);
    for wrong in names::port_number(number) {
        errors.push(FieldError::invalid(
            &path.child("port"),
            &number.into(),
            wrong,
        ));
    }
    supported(path, port, "protocol", &["SCTP", "TCP", "UDP"], errors);
}

/// Checks the endpoints of a slice.
pub(super) fn validate_slice(slice: &Value, errors: &mut Errors) {
    const MOST: usize = 100;
    let family = text(slice, "addressType");
    let list = Path::new("endpoints");
    for (index, endpoint) in items(slice, "endpoints").enumerate() {
        let path = list.index(index);
        let list = path.child("addresses");
        match items(endpoint, "addresses").count() {
            0 => errors.push(FieldError::required(
                &list,
                "must contain at least 1 address",
            )),
            count if count > MOST => errors.push(FieldError::too_many(&list, count, MOST)),
            _ => {}
        }
        for (index, address) in items(endpoint, "addresses").enumerate() {
            let address = address.as_str().unwrap_or_default();
            let parsed = address.parse::<IpAddr>();
            let fits = match family {
                "IPv4" => parsed.is_ok_and(|ip| ip.is_ipv4()),
                "IPv6" => parsed.is_ok_and(|ip| ip.is_ipv6()),
                _ => continue,
            };
            if !fits {
                errors.push(FieldError::invalid_str(
                    &list,
                    address,
                    format!("must be an {family} address"),
                ));
            }
            validate_reachable(&list.index(index), address, errors);
        }
    }
}

/// Refuses addresses that lead to nobody, or to whoever asks.
fn validate_reachable(path: &Path<'_>, address: &str, errors: &mut Errors) {
    let wrong = match address.parse::<IpAddr>() {
        Err(_) => "must be a valid IP address",
        Ok(ip) if ip.is_unspecified() => "may not be unspecified (0.0.0.0 or ::)",
        Ok(ip) if ip.is_loopback() => "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        Ok(IpAddr::V4(ip)) if ip.is_link_local() => LINK_LOCAL,
        Ok(IpAddr::V6(ip)) if ip.is_unicast_link_local() => LINK_LOCAL,
        Ok(IpAddr::V4(ip)) if ip.octets().starts_with(&[224, 0, 0]) => LINK_LOCAL_GROUP,
        Ok(IpAddr::V6(ip)) if ip.octets().starts_with(&[0xff, 0x02]) => LINK_LOCAL_GROUP,
        Ok(_) => return,
    };
    errors.push(FieldError::invalid_str(path, address, wrong));
}

const LINK_LOCAL: &str = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
const LINK_LOCAL_GROUP: &str =
    "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";

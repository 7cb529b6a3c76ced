//! Amounts of resources by name: what containers, pods and claims ask for.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kinds::edit::{entries, items, text};
use crate::quantity::Quantity;

/// How much of each resource.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// The amounts in the map `field`.
pub(crate) fn read(of: &Value, field: &str) -> Amounts {
    let read = |(name, amount): (&String, &Value)| {
        // What is no quantity was refused when it was written.
        let amount = Quantity::parse(amount.as_str()?).ok()?;
        Some((name.clone(), amount))
    };
    entries(of, field).filter_map(read).collect()
}

/// The amounts of `resources` in a container, a pod's spec or a claim's: its `requests`
/// or its `limits`.
pub(crate) fn asked(of: &Value, field: &str) -> Amounts {
    read(of.get("resources").unwrap_or(&Value::Null), field)
}

/// The `requests` or `limits` of a pod: the sum of the containers, or what one of the init
/// containers needs while it runs, whichever is more; what the pod says itself counts
/// before both.
pub(crate) fn of_pod(spec: &Value, field: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in items(spec, "containers") {
        add(&mut total, &asked(container, field));
    }
    let (mut staying, mut highest) = (Amounts::new(), Amounts::new());
    for container in items(spec, "initContainers") {
        let own = asked(container, field);
        let mut running = staying.clone();
        add(&mut running, &own);
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, &own);
            staying.clone_from(&running);
        }
        raise(&mut highest, &running);
    }
    raise(&mut total, &highest);
    let own = asked(spec, field).into_iter();
    total.extend(own.filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    total
}

/// Adds each amount of `more`.
pub(crate) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match total.get_mut(name) {
            Some(sum) => *sum = sum.plus(amount),
            None => {
                total.insert(name.clone(), amount.clone());
            }
        }
    }
}

/// Makes each amount at least as much as another.
fn raise(amounts: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if amounts.get(name).is_none_or(|known| known < amount) {
            amounts.insert(name.clone(), amount.clone());
        }
    }
}

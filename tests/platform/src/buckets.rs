//! Buckets of others: how they are described, and who may use them.

use serde_json::{Map, Value, json};

use crate::Tenant;

/// What may be seen.
pub const UNCLASSIFIED: &str = "unclassified";
/// What may not be seen by everybody.
pub const PROTECTED_B: &str = "protected-b";

/// A bucket of which something is wrong, with who may read it.
pub const MISNAMED: (&str, &str) = ("misnamed", "WBD");

/// One bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// How it is classified.
    pub class: &'static str,
    /// The container that it is in.
    pub container: &'static str,
    /// Which part of the container; all of it where this is empty.
    pub folder: &'static str,
    /// The service principal, and what volumes are called by; earlier descriptions have
    /// neither.
    pub own: Option<(&'static str, &'static str)>,
    /// The storage account that it is in.
    pub account: &'static str,
    /// Profiles that may read it.
    pub readers: Vec<String>,
    /// Those that may write to it besides.
    pub writers: Vec<String>,
}

/// Storage accounts of buckets, as the configuration says them.
pub const ACCOUNTS: [(&str, &str, &str); 2] = [
    // Described by a gateway, and in the ConfigMap as internal and as external.
    (
        "gatewayunclassified",
        "insideunclassified",
        "outsideunclassified",
    ),
    ("gatewayprotected", "insideprotected", "outsideprotected"),
];

/// The names of those whose place in the list fits.
fn among(tenants: &[Tenant], fits: impl Fn(usize) -> bool) -> Vec<String> {
    let chosen = tenants.iter().enumerate().filter(|(index, _)| fits(*index));
    chosen.map(|(_, tenant)| tenant.name.clone()).collect()
}

/// What two gateways describe: one in the form of today, one in the earlier one.
pub fn of_gateways(tenants: &[Tenant]) -> Vec<Bucket> {
    let bucket = |class, container| Bucket {
        class,
        container,
        folder: "",
        own: None,
        account: match class {
            UNCLASSIFIED => ACCOUNTS[0].0,
            _ => ACCOUNTS[1].0,
        },
        readers: Vec::new(),
        writers: Vec::new(),
    };
    vec![
        Bucket {
            own: Some(("fdi-sp-a", "reports")),
            readers: among(tenants, |index| index % 2 == 0),
            // One of them may not read, and so has nothing.
            writers: among(tenants, |index| index % 4 == 0 || index == 1),
            ..bucket(UNCLASSIFIED, "reports-container")
        },
        Bucket {
            folder: "2020/raw",
            own: Some(("fdi-sp-b", "raw-2020")),
            readers: among(tenants, |index| index % 10 == 6),
            ..bucket(UNCLASSIFIED, "archive")
        },
        Bucket {
            own: Some(("fdi-sp-a", MISNAMED.1)),
            readers: among(tenants, |index| index == 2),
            ..bucket(UNCLASSIFIED, MISNAMED.0)
        },
        Bucket {
            readers: among(tenants, |index| index % 4 == 0),
            writers: among(tenants, |index| index % 8 == 0),
            ..bucket(PROTECTED_B, "ledger")
        },
    ]
}

/// All data of a gateway.
pub fn document(buckets: &[Bucket], class: &str) -> Value {
    let mut data = Map::new();
    // Its own policies, which are no bucket.
    data.insert("httpapi".to_owned(), json!({"authz": {}}));
    for bucket in buckets.iter().filter(|bucket| bucket.class == class) {
        let key = match bucket.folder {
            "" => bucket.container.to_owned(),
            folder => format!("{}/{folder}", bucket.container),
        };
        let mut entry = json!({"readers": bucket.readers, "writers": bucket.writers});
        if let Some((principal, name)) = bucket.own {
            entry["spn"] = json!(principal);
            entry["name"] = json!(name);
        }
        data.insert(key, entry);
    }
    Value::Object(data)
}

/// What the ConfigMap describes: a bucket in each of its keys.
pub fn of_config_map(tenants: &[Tenant]) -> Vec<Bucket> {
    let bucket = |class, account, container, name, every: usize| Bucket {
        class,
        container,
        folder: "",
        own: Some(("fdi-sp-a", name)),
        account,
        readers: among(tenants, |index| index % every == 0),
        writers: among(tenants, |index| index % (2 * every) == 0),
    };
    let [unclassified, protected_b] = ACCOUNTS;
    vec![
        bucket(UNCLASSIFIED, unclassified.1, "inside-u", "inside", 1),
        bucket(PROTECTED_B, protected_b.1, "inside-b", "inside", 2),
        Bucket {
            folder: "deep/er",
            ..bucket(PROTECTED_B, protected_b.2, "outside-b", "outside", 1)
        },
        bucket(UNCLASSIFIED, unclassified.2, "outside-u", "outside", 3),
    ]
}

/// The data of the ConfigMap.
pub fn config_map(buckets: &[Bucket]) -> Value {
    let mut data = Map::new();
    for (class, accounts) in [UNCLASSIFIED, PROTECTED_B].into_iter().zip(ACCOUNTS) {
        for (word, account) in [("internal", accounts.1), ("external", accounts.2)] {
            let here = buckets
                .iter()
                .filter(|bucket| bucket.class == class && bucket.account == account);
            let items: Vec<Value> = here
                .map(|bucket| {
                    let (principal, name) = bucket.own.unwrap_or_default();
                    json!({
                        "bucketName": bucket.container, "subfolder": bucket.folder,
                        "pvName": name, "spn": principal,
                        "readers": bucket.readers, "writers": bucket.writers,
                    })
                })
                .collect();
            let key = format!("fdi-{class}-{word}.json");
            data.insert(key, json!(Value::from(items).to_string()));
        }
    }
    Value::Object(data)
}

//! What each plugin applied for which primary, as a table.

use reeve_agent::UnitSummary;

/// The table, with a line for each object.
pub(crate) fn of(units: &[UnitSummary]) -> String {
    let mut rows = vec![[
        "PLUGIN".to_owned(),
        "PRIMARY".to_owned(),
        "APPLIED".to_owned(),
    ]];
    for unit in units {
        let mut objects = unit.objects.iter().map(ToString::to_string);
        let applied = match unit.ready {
            false => "(not ready)".to_owned(),
            true => objects.next().unwrap_or_else(|| "-".to_owned()),
        };
        rows.push([unit.plugin.clone(), unit.primary.to_string(), applied]);
        // Those of one unit stand below one another.
        let more = objects.filter(|_| unit.ready);
        rows.extend(more.map(|object| [String::new(), String::new(), object]));
    }
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    rows.iter()
        .map(|[plugin, primary, applied]| {
            format!("{plugin:first$}  {primary:second$}  {applied}\n")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reeve_core::{GroupVersionKind, ObjectReference};

    #[test]
    fn columns_line_up() {
        let kind = |kind| GroupVersionKind::new("", "v1", kind);
        let unit =
            |plugin: &str, name: &str, objects: &[&str], problem: Option<&str>| UnitSummary {
                plugin: plugin.into(),
                primary: ObjectReference::new(kind("Profile"), None, name),
                objects: objects
                    .iter()
                    .map(|object| {
                        ObjectReference::new(kind("ResourceQuota"), Some(name.into()), *object)
                    })
                    .collect(),
                ready: problem.is_none(),
                problem: problem.map(Into::into),
            };
        let table = of(&[
            unit("quotas", "alice", &["q", "r"], None),
            unit("none", "alice", &[], None),
            unit("q", "bo", &["q", "r"], Some("Trapped: x")),
        ]);
        assert_eq!(
            table,
            "PLUGIN  PRIMARY        APPLIED\n\
             quotas  Profile alice  ResourceQuota alice/q\n\
             \x20                      ResourceQuota alice/r\n\
             none    Profile alice  -\n\
             q       Profile bo     (not ready)\n"
        );
    }
}

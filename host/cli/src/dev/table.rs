//! What each plugin applied for which primary, as a table.

use reeve_agent::UnitSummary;

/// The table, with a line for each unit.
pub(crate) fn of(units: &[UnitSummary]) -> String {
    let mut rows = vec![[
        "PLUGIN".to_owned(),
        "PRIMARY".to_owned(),
        "APPLIED".to_owned(),
    ]];
    for unit in units {
        let objects: Vec<String> = unit.objects.iter().map(ToString::to_string).collect();
        let applied = match (unit.ready, objects.is_empty()) {
            (false, _) => "(not ready)".to_owned(),
            (true, true) => "-".to_owned(),
            (true, false) => objects.join(", "),
        };
        rows.push([unit.plugin.clone(), unit.primary.to_string(), applied]);
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
        let unit = |plugin: &str, name: &str, problem: Option<&str>| UnitSummary {
            plugin: plugin.into(),
            primary: ObjectReference::new(kind("Profile"), None, name),
            objects: vec![ObjectReference::new(
                kind("ResourceQuota"),
                Some(name.into()),
                "q",
            )],
            ready: problem.is_none(),
            problem: problem.map(Into::into),
        };
        let table = of(&[
            unit("quotas", "alice", None),
            unit("q", "bo", Some("Trapped: x")),
        ]);
        assert_eq!(
            table,
            "PLUGIN  PRIMARY        APPLIED\n\
             quotas  Profile alice  ResourceQuota alice/q\n\
             q       Profile bo     (not ready)\n"
        );
    }
}

//! When a CronJob runs: its schedule and its time zone.

use crate::field::{Errors, FieldError, Path};
use crate::schedule::{self, Schedule, is_zone_name};

/// Checks a schedule, which has to leave the time zone to its own field.
pub(super) fn validate(path: &Path<'_>, schedule: &str, errors: &mut Errors) {
    let mut complain = |why: String| errors.push(FieldError::invalid_str(path, schedule, why));
    if let Err(wrong) = Schedule::parse(schedule) {
        complain(wrong.to_string());
    }
    if schedule.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        complain(why.to_owned());
    }
}

/// Checks the name of a time zone.
pub(super) fn validate_zone(path: &Path<'_>, zone: &str, errors: &mut Errors) {
    let mut complain = |why: String| errors.push(FieldError::invalid_str(path, zone, why));
    if zone.is_empty() {
        complain("timeZone must be nil or non-empty string".to_owned());
        return;
    }
    if !is_zone_name(zone) {
        complain(format!("unknown time zone {zone}"));
        return;
    }
    if zone.eq_ignore_ascii_case("Local") {
        complain(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }
    if let Err(wrong) = schedule::zone(zone) {
        complain(wrong.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_no_zone() {
        let complaints = |schedule: &str| {
            let mut errors = Errors::new();
            validate(&Path::new("schedule"), schedule, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let no_zone = |schedule: &str| {
            format!(
                "schedule: Invalid value: \"{schedule}\": cannot use TZ or CRON_TZ in schedule, \
                 use timeZone field instead"
            )
        };
        assert!(complaints("1,,2 * * * *").is_empty());
        assert_eq!(complaints("TZ=UTC @daily"), [no_zone("TZ=UTC @daily")]);
        assert_eq!(
            complaints("TZ"),
            [
                "schedule: Invalid value: \"TZ\": expected exactly 5 fields, found 1: [TZ]"
                    .to_owned(),
                no_zone("TZ"),
            ]
        );
    }
}

//! Outside effects that are written down before they are begun.
//!
//! What was made outside and is written nowhere would be known to nobody when the agent
//! dies, and never be taken away. So a run waits until the `Unit` object has what it is
//! about to ask for.

use super::pending::Haste;
use super::{About, Report, Reports, UnitReport};
use reeve_api::{ActionStatus, UnitStatus};
use std::collections::HashMap;
use tokio::sync::oneshot;

/// Those who wait until effects are written, by the name of the `Unit` object.
#[derive(Debug, Default)]
pub(super) struct Begun(HashMap<String, Awaited>);

#[derive(Debug)]
struct Awaited {
    actions: Vec<ActionStatus>,
    told: oneshot::Sender<()>,
}

impl Begun {
    fn wait(&mut self, object: &str, actions: Vec<ActionStatus>) -> oneshot::Receiver<()> {
        // Who has lost patience is not told.
        self.0.retain(|_, awaited| !awaited.told.is_closed());
        let (told, written) = oneshot::channel();
        let awaited = Awaited { actions, told };
        self.0.insert(object.to_owned(), awaited);
        written
    }

    /// The objects that somebody waits for.
    pub(super) fn awaited(&self) -> impl Iterator<Item = &String> {
        let awaited = self.0.iter();
        let awaited = awaited.filter(|(_, awaited)| !awaited.told.is_closed());
        awaited.map(|(object, _)| object)
    }

    /// Whether somebody waits until that object is written.
    pub(super) fn is_awaited(&self, object: &str) -> bool {
        let awaited = self.0.get(object);
        awaited.is_some_and(|awaited| !awaited.told.is_closed())
    }

    /// Notes that an object was written.
    pub(super) fn written(&mut self, object: &str, status: &UnitStatus) {
        let awaited = self.0.get(object);
        if awaited.is_some_and(|awaited| awaited.actions == status.actions)
            && let Some(awaited) = self.0.remove(object)
        {
            // Who has lost patience is not told.
            let _ = awaited.told.send(());
        }
    }

    /// Lets everybody go who waits: nothing more is written.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Reports {
    /// Has the effects of a unit written down, and says whether they are; not when somebody
    /// else is the one who reports. What else the report has counts only where nothing was
    /// said of the unit.
    pub(crate) async fn record_effects(&self, object: &str, report: UnitReport) -> bool {
        let written = {
            let mut pending = self.0.pending.lock();
            if pending.muted {
                return false;
            }
            let actions = report.status.actions.clone();
            let said = match pending.units.get_mut(object) {
                None => Box::new(report),
                Some(said) => {
                    said.spec = report.spec;
                    said.status.actions.clone_from(&actions);
                    said.clone()
                }
            };
            pending.units.insert(object.to_owned(), said.clone());
            let about = About::Unit(object.to_owned());
            pending.place(about, Report::Unit(Some(said)), Haste::News);
            pending.begun.wait(object, actions)
        };
        self.0.arrived.notify_one();
        written.await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reporter::names::Writing;
    use futures::FutureExt as _;
    use reeve_api::UnitSpec;

    fn report(keys: &[&str], failures: u32) -> UnitReport {
        let actions = keys.iter().map(|key| ActionStatus {
            key: (*key).to_owned(),
            ..ActionStatus::default()
        });
        UnitReport {
            spec: UnitSpec::default(),
            status: UnitStatus {
                failures,
                actions: actions.collect(),
                ..UnitStatus::default()
            },
        }
    }

    fn unit(name: &str) -> About {
        About::Unit(name.to_owned())
    }

    /// What the reporter would write next, and that it did.
    async fn write(reports: &Reports) -> (About, UnitReport) {
        let (about, report) = reports.take().await;
        let (About::Unit(name), Report::Unit(said)) = (&about, &report) else {
            panic!("{report:?}");
        };
        let mut pending = reports.0.pending.lock();
        let (writing, _) = pending.names.writing(name, said.as_deref());
        let Writing::Write(written) = writing else {
            panic!("{writing:?}");
        };
        pending.begun.written(name, &written.status);
        drop(pending);
        reports.written(&about, true);
        (about, *written)
    }

    #[tokio::test]
    async fn who_begins_an_effect_waits_until_it_is_written() {
        let reports = Reports::default();
        for name in ["a", "b", "x", "y"] {
            let said = Report::Unit(Some(Box::new(report(&["old"], 3))));
            reports.put(unit(name), said);
        }
        let mut recorded = Box::pin(reports.record_effects("x", report(&["old", "new"], 0)));
        assert_eq!(recorded.as_mut().now_or_never(), None);
        // It goes before the others, and what else was said stays said.
        let written = write(&reports).await;
        assert_eq!(written, (unit("x"), report(&["old", "new"], 3)));
        assert!(recorded.await);
        assert_eq!(reports.said("x"), Some(report(&["old", "new"], 3)));
        for name in ["y", "a", "b"] {
            assert_eq!(write(&reports).await.0, unit(name));
        }
        assert!(reports.is_idle());

        // Of whom nothing was said.
        let mut recorded = Box::pin(reports.record_effects("z", report(&["new"], 0)));
        assert_eq!(recorded.as_mut().now_or_never(), None);
        // Something else of it does not count.
        reports
            .0
            .pending
            .lock()
            .begun
            .written("z", &report(&["old"], 0).status);
        assert_eq!(recorded.as_mut().now_or_never(), None);
        assert_eq!(write(&reports).await, (unit("z"), report(&["new"], 0)));
        assert!(recorded.await);
        assert_eq!(reports.0.pending.lock().begun.len(), 0);
    }

    #[tokio::test]
    async fn whoever_does_not_report_begins_nothing() {
        let reports = Reports::default();
        let mut recorded = Box::pin(reports.record_effects("x", report(&["new"], 0)));
        assert_eq!(recorded.as_mut().now_or_never(), None);
        reports.mute();
        assert!(!recorded.await);
        assert!(!reports.record_effects("x", report(&["new"], 0)).await);
        assert_eq!(reports.len(), 0);
    }
}

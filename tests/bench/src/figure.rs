//! Figures and their limits.

use std::process::ExitCode;

/// Figures as they are found.
#[derive(Default)]
pub(crate) struct Figures {
    count: usize,
    beyond: usize,
}

impl Figures {
    /// Tells a figure that must not be above its limit.
    pub(crate) fn limited(&mut self, what: &str, value: f64, unit: &str, limit: f64) {
        self.judged(what, value, unit, "at most", limit, value <= limit);
    }

    /// Tells a figure that must not be below its limit.
    pub(crate) fn at_least(&mut self, what: &str, value: f64, unit: &str, limit: f64) {
        self.judged(what, value, unit, "at least", limit, value >= limit);
    }

    fn judged(&mut self, what: &str, value: f64, unit: &str, side: &str, limit: f64, good: bool) {
        let verdict = if good { "ok" } else { "BEYOND" };
        self.beyond += usize::from(!good);
        self.count += 1;
        println!("{what:<62} {value:>9.2} {unit:<4} {side:<8} {limit:>7.2}  {verdict}");
    }

    /// Tells a figure that is only to be known.
    pub(crate) fn plain(&mut self, what: &str, value: f64, unit: &str) {
        self.count += 1;
        println!("{what:<62} {value:>9.2} {unit}");
    }

    /// Tells how many there were.
    pub(crate) fn finish(self) -> ExitCode {
        println!("{} figures, {} beyond their limit", self.count, self.beyond);
        ExitCode::from(u8::from(self.beyond > 0))
    }
}

/// The middle of some values.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

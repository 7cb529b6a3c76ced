//! What an operator lets a plugin do to objects that are there already.

use crate::ignore::Rule;
use std::fmt;

/// Which objects that somebody else made a plugin may take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adoption {
    /// None.
    #[default]
    Never,
    /// Those that nothing shows to be anybody's; see [`super::judge`].
    IfUnowned,
    /// All but those that another unit or plugin of ours has.
    Always,
}

/// As `Plugin.spec.adoption` writes it.
impl fmt::Display for Adoption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The policy of one plugin, as far as applying its objects is concerned.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Which objects it may take over.
    pub adoption: Adoption,
    /// Managers whose `Update` entries become the plugin's when it takes an object
    /// over: what they set and the plugin does not want goes then.
    pub adopt_from: Vec<String>,
    /// Whether an object that cannot be changed as wanted is deleted and made anew.
    pub recreate: bool,
    /// Fields that the plugin does not get to set.
    pub ignore: Vec<Rule>,
}

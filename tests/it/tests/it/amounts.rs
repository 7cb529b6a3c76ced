//! Amounts mean the same to a plugin and to the embedded cluster, which share no code.

use proptest::prelude::*;
use reeve_sdk::Quantity;
use reeve_sim::quantity::milli_value;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Thousandths, and what is an amount at all. The cluster counts negative ones of more
    /// than 18 digits as they are after it has stored them, so these are left out.
    #[test]
    fn thousandths_are_those_of_the_cluster(
        whole in "[0-9]{0,22}",
        fraction in "(\\.[0-9]{0,12})?",
        unit in "|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,3}|K|mi|x",
    ) {
        let text = format!("{whole}{fraction}{unit}");
        let of_plugin = text.parse::<Quantity>().ok().map(|amount| amount.milli_value());
        let of_cluster = milli_value(&text).ok();
        prop_assert_eq!(of_plugin, of_cluster, "{}", text);
    }
}

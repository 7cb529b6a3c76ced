//! The checks of this crate, held against the checkout.

use reeve_tidy::crates::{self, Graph};
use reeve_tidy::{Tree, documents, sources};

#[track_caller]
fn none_found(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn crates_depend_in_the_direction_of_the_map() {
    let graph = Graph::of_workspace(Tree::read().unwrap().root()).unwrap();
    none_found(&crates::against_the_direction(&graph));
}

#[test]
fn crates_from_outside_are_known_only_where_they_belong() {
    let graph = Graph::of_workspace(Tree::read().unwrap().root()).unwrap();
    none_found(&crates::out_of_place(&graph));
}

#[test]
fn crates_of_the_design_are_there_once() {
    let graph = Graph::of_workspace(Tree::read().unwrap().root()).unwrap();
    none_found(&crates::missing_or_doubled(&graph));
}

#[test]
fn unsafe_code_is_in_one_place() {
    let tree = Tree::read().unwrap();
    none_found(
        &tree
            .rust()
            .flat_map(sources::unsafe_code)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn sources_have_a_purpose_a_name_and_a_bound() {
    let tree = Tree::read().unwrap();
    none_found(&tree.rust().flat_map(sources::shape).collect::<Vec<_>>());
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let tree = Tree::read().unwrap();
    none_found(
        &tree
            .files()
            .iter()
            .flat_map(sources::lints)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn text_says_nothing_about_one_machine() {
    let tree = Tree::read().unwrap();
    none_found(
        &tree
            .files()
            .iter()
            .flat_map(documents::machine_words)
            .collect::<Vec<_>>(),
    );
}

#[test]
fn links_lead_somewhere() {
    none_found(&documents::dead_links(&Tree::read().unwrap()));
}

#[test]
fn every_guest_is_used_by_a_test() {
    none_found(&sources::forgotten_guests(&Tree::read().unwrap()));
}

#[test]
fn every_plugin_has_scenarios() {
    none_found(&sources::plugins_without_scenarios(&Tree::read().unwrap()));
}

#[test]
fn plugins_have_as_many_lines_as_their_table_says() {
    none_found(&documents::lines_of_plugins(&Tree::read().unwrap()));
}

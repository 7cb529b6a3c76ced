//! A cluster that is not there, and one that does not know who asks.

use super::Desk;

/// Some command of each sort: those that look as the agent does, and those that ask.
const COMMANDS: [(&str, i32); 8] = [
    ("plan", 1),
    ("record quotas/alice --file x", 2),
    ("get plugins", 2),
    ("explain configmap x -n default", 1),
    ("undo", 2),
    ("approve quotas --all", 2),
    ("plugin diff quotas", 2),
    ("pack status", 2),
];

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_known_is_told_so_at_once() {
    let desk = Desk::new().await;
    let kubeconfig = desk.serving.kubeconfig_for("of-nobody");
    let place = desk.file("kubeconfig", kubeconfig.as_bytes());
    for (command, code) in COMMANDS {
        let said = desk.reeve(command).await;
        let (head, tail) = said.err.split_once("/ ").unwrap_or_default();
        assert!(
            head.starts_with("error: the API server at https://127.0.0.1:"),
            "{command}: {said:?}"
        );
        assert_eq!(
            tail,
            format!(
                "does not accept the credentials in {}: they are wrong, or no longer valid; name \
                 others with --kubeconfig or --context\n",
                place.display()
            ),
            "{command}"
        );
        assert_eq!(said.code, Some(code), "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_named() {
    let desk = Desk::new().await;
    let kubeconfig = std::fs::read_to_string(desk.folder.path().join("kubeconfig")).unwrap();
    let (before, rest) = kubeconfig.split_once("https://127.0.0.1:").unwrap();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    // No server has this port.
    let place = desk.file(
        "kubeconfig",
        format!("{before}https://127.0.0.1:1{after}").as_bytes(),
    );
    for (command, code) in COMMANDS {
        let said = desk.reeve(command).await;
        let expected = format!(
            "error: cannot reach the API server at https://127.0.0.1:1/, which {} names; does it \
             run, and is it the one that is meant (--kubeconfig, --context)?: ",
            place.display()
        );
        assert!(said.err.starts_with(&expected), "{command}: {said:?}");
        assert_eq!(said.err.lines().count(), 1, "{command}: {said:?}");
        assert_eq!(said.code, Some(code), "{command}");
    }
}

//! What differs between two servers that behave the same: what they draw at
//! random, when it was, and where they listen.

use std::sync::LazyLock;

use regex::Regex;

/// What is replaced by what, in this order.
static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        // The head of a line of kubectl's own log.
        (
            r"(?m)^[EWI]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w.]+:\d+\] ",
            "LOG ",
        ),
        // Clients end a watch once they have waited long enough. Where that meets the reading
        // of an event, or the watch was a short one, client-go may log it.
        (
            r#"(?m)^LOG "Warning: watch ended with error" .*\b(context canceled|very short watch)\b.*(\n|\z)"#,
            "",
        ),
        (r"https://127\.0\.0\.1:\d+", "SERVER"),
        (r"\b127\.0\.0\.1:\d+", "SERVER"),
        (
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            "UID",
        ),
        (
            r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[-+]\d{4}( UTC)?|Z)?",
            "TIME",
        ),
        (
            r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [-+]\d{4}",
            "TIME",
        ),
        // Helm's.
        (
            r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\b",
            "TIME",
        ),
        (r#"(?i)(resource ?version"?: *"?)\d+"#, "${1}VERSION"),
        // The server's own, in `kube-root-ca.crt`, one or several.
        (
            r"(?s)(-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----(\\n|\\|\s)*)+",
            "CERTIFICATES",
        ),
        // Of a Service.
        (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
        (r"\beyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
        // The volume of a pod's token.
        (r"\bkube-api-access-\w{5}\b", "TOKEN-VOLUME"),
        // In the folder of either server.
        (r"/[-\w./]*/reeve-(real|embedded)-[-\w./]+", "FILE"),
        // An age, and the width that it gives to its column.
        (r"\b(\d+[dhm])*\d+m?s\b", "AGE"),
        (r"[ \t]{2,}", "  "),
        (r"(?m) +$", ""),
        // kube-apiserver repairs the addresses of Services from time to time, and may
        // find one that is being given. It tells so by an event, of which a description
        // may have no other.
        (r"(?m)^.*\bClusterIPNotAllocated\b.*(\n|\z)", ""),
        (
            r"(?m)^Events:\n +Type  Reason  Age  From  Message\n( +-+)+\n(\n|\z)",
            "Events:  <none>\n${2}",
        ),
    ]
    .into_iter()
    .map(|(pattern, with)| {
        let regex = Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"));
        (regex, with)
    })
    .collect()
});

/// Puts words in place of what differs anyway.
pub(crate) fn normal(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in RULES.iter() {
        text = pattern.replace_all(&text, *with).into_owned();
    }
    text
}

#[test]
fn chance_and_time_are_left_out() {
    for (text, expected) in [
        ("NAME   AGE\na      12s\n", "NAME  AGE\na  AGE\n"),
        ("a   2m3s   x  \n", "a  AGE  x\n"),
        (
            "\"-----BEGIN CERTIFICATE-----\\n\\\n  MII=\\n\\\n  -----END CERTIFICATE-----\\n\\\n  \",",
            "\"CERTIFICATES\",",
        ),
        (
            "-----BEGIN CERTIFICATE-----\na\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\nb\n-----END CERTIFICATE-----\"}",
            "CERTIFICATES\"}",
        ),
        (r#"resourceVersion: "123""#, r#"resourceVersion: "VERSION""#),
        (
            r#"{"resourceVersion":"123","uid":"3f2c9d0e-1b1a-4c57-9c44-0123456789ab"}"#,
            r#"{"resourceVersion":"VERSION","uid":"UID"}"#,
        ),
        (
            "Events:\n  Type     Reason  Age  From  Message\n  ----     ------  ----  ----  -------\n  \
             Warning  ClusterIPNotAllocated  2s   ipallocator-repair-controller  repairing\n\nNext:\n",
            "Events:  <none>\n\nNext:\n",
        ),
        (
            "Events:\n  Type  Reason  Age  From  Message\n  ----  ------  ----  ----  -------\n  Normal  \
             Other  2s  web  well\n  Warning  ClusterIPNotAllocated  2s  x  repairing\n",
            "Events:\n  Type  Reason  Age  From  Message\n  ----  ------  ----  ----  -------\n  Normal  \
             Other  AGE  web  well\n",
        ),
        (
            "W1128 03:59:01.000001   12345 reflector.go:343] \"Warning: watch ended with error\" \
             type=\"/v1, Kind=ConfigMap\" err=\"unable to decode an event: context canceled\"\nnext\n",
            "next\n",
        ),
        (
            "W1128 03:59:01.000001   12345 reflector.go:343] \"Warning: watch ended with error\" \
             err=\"very short watch: watch lasted less than a second\"\n",
            "",
        ),
        (
            "W1128 03:59:01.000001   12345 reflector.go:343] \"Warning: watch ended with error\" \
             type=\"/v1, Kind=ConfigMap\" err=\"too old resource version\"\n",
            "LOG \"Warning: watch ended with error\" type=\"/v1, Kind=ConfigMap\" \
             err=\"too old resource version\"\n",
        ),
        ("at 2026-01-02T03:04:05Z", "at TIME"),
        ("images/v1.2.3 5 items", "images/v1.2.3 5 items"),
    ] {
        assert_eq!(normal(text), expected);
    }
}

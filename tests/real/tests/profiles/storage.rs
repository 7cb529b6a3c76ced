//! What is in the storage accounts, as the service itself tells it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, future};
use hyper::{Request, Response};
use reeve_outside::http::Keys;
use reeve_outside::sign::{KeyError, Scheme, Signer};
use reeve_outside::{Http, HttpLimits, Networks, Roots, Rule};
use regex::Regex;

use crate::stage::Stage;

struct OneKey(Arc<Signer>);

impl Keys for OneKey {
    fn signer<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Arc<Signer>, KeyError>> {
        future::ready(Ok(Arc::clone(&self.0))).boxed()
    }
}

/// The containers of an account, and the Profile that each says that it is for.
pub(crate) fn containers(stage: &Stage, account: &str) -> Result<BTreeMap<String, String>> {
    let answer = ask(stage, account, "GET", "?comp=list&include=metadata")?;
    let body = String::from_utf8(answer.body().to_vec())?;
    ensure!(answer.status().is_success(), "{body}");
    let name = Regex::new("<Name>([^<]*)</Name>")?;
    let owner = Regex::new("(?i)<kubeflowprofile>([^<]*)</kubeflowprofile>")?;
    let one = |pattern: &Regex, text: &str| {
        let found = pattern.captures(text);
        found.map(|found| found[1].to_owned())
    };
    body.split("</Container>")
        .filter(|part| part.contains("<Container>"))
        .map(|part| {
            let name = one(&name, part).with_context(|| format!("no name in {part}"))?;
            Ok((name, one(&owner, part).unwrap_or_default()))
        })
        .collect()
}

/// Makes a container that says nothing of whose it is, as the controllers made them.
pub(crate) fn make(stage: &Stage, account: &str, name: &str) -> Result<()> {
    let answer = ask(stage, account, "PUT", &format!("{name}?restype=container"))?;
    ensure!(answer.status() == 201, "{name}: {answer:?}");
    Ok(())
}

/// What an account answers to who has its key.
fn ask(stage: &Stage, account: &str, method: &str, what: &str) -> Result<Response<Bytes>> {
    let url = stage.platform.storage.url_of(account);
    let entries = [
        ("azurestorageaccountname", account),
        ("azurestorageaccountkey", stage.platform.storage_key()),
    ];
    let entries = entries.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let signer = Scheme::AzureSharedKey.signer("storage", &BTreeMap::from(entries))?;
    let mut rule = Rule::new(&url)?;
    rule.networks = Networks::new(vec!["127.0.0.0/8".parse()?]);
    rule.roots = Roots::Only(stage.platform.roots().to_owned());
    rule.key = Some("storage".to_owned());
    let keys = Arc::new(OneKey(Arc::new(signer)));
    let http = Http::new(vec![rule], keys, HttpLimits::default());
    let request = Request::builder()
        .method(method)
        .uri(format!("{url}{what}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(http.send(request.body(Bytes::new())?))?)
}

//! Profiles are deleted.

use anyhow::{Result, ensure};
use reeve_real::{Azurite, eventually};

use crate::expected::KINDS;
use crate::stage::Stage;
use crate::{databases, storage};
use reeve_test_platform::{NAMESPACE, Tenant};

/// Their objects go, also those in other namespaces and in none; their data stays.
pub(crate) fn nothing_of_theirs_is_left(stage: &Stage, tenants: &[Tenant]) -> Result<()> {
    let accounts = [Azurite::ACCOUNT, Azurite::OTHER_ACCOUNT];
    let containers = accounts.map(|account| storage::containers(stage, account));
    let logins = tenants
        .iter()
        .filter(|tenant| tenant.has_gitea())
        .map(|tenant| databases::logins(stage, tenant));
    let logins: Vec<_> = logins.collect::<Result<_>>()?;
    let delete = ["delete", "profiles.kubeflow.org", "--all", "--wait=false"];
    stage.platform.cluster.kubectl(&delete)?;
    eventually("the Profiles are gone", || {
        let left = stage
            .platform
            .cluster
            .list("profiles.kubeflow.org", "")?
            .len();
        ensure!(left == 0, "{left} are there");
        Ok(())
    })?;
    eprintln!("the Profiles are gone");
    // Namespaces are not ours, and still there: so nothing goes with them.
    for kind in KINDS {
        let waited = eventually(&format!("no {kind} are left"), || {
            let left = stage.objects_of_plugins(kind)?;
            let left: Vec<_> = left.keys().collect();
            ensure!(left.is_empty(), "{left:?}");
            Ok(())
        });
        stage.explained(waited)?;
    }
    stage.explained(eventually("nothing is left to be said", || {
        let left = stage.platform.cluster.list("units", NAMESPACE)?;
        let left: Vec<_> = left.iter().map(|unit| &unit["spec"]).collect();
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    }))?;
    eprintln!("nothing of theirs is left");
    for login in logins.iter().flatten() {
        login.opens(stage)?;
    }
    eprintln!("{} logins still open", 2 * logins.len());
    for (account, before) in accounts.into_iter().zip(containers) {
        let (before, now) = (before?, storage::containers(stage, account)?);
        ensure!(before == now, "{account}: {now:?}, not {before:?}");
    }
    Ok(())
}

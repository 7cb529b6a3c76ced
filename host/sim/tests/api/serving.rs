//! The server on a socket: TLS, tokens, kubeconfig.

use std::net::{Ipv4Addr, SocketAddr};

use crate::support::server;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use reeve_sim::{Identity, Server};

async fn connect(kubeconfig: &str) -> kube::Client {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

#[tokio::test]
async fn a_kubeconfig_is_all_that_a_client_needs() {
    let server: Server = server();
    let serving = server.serve(any_port()).await.unwrap();
    let client = connect(&serving.kubeconfig()).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert_eq!(
        namespaces
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        4
    );
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();
    // It is the same server as the one inside the process.
    let inside: Api<ConfigMap> = Api::default_namespaced(server.client());
    assert!(inside.get("a").await.is_ok());
    serving.shutdown().await;
    assert!(maps.get("a").await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn callers_are_known_by_their_tokens() {
    let server = server();
    let serving = server.serve(any_port()).await.unwrap();
    let code = |error: kube::Error| match error {
        kube::Error::Api(status) => status.code,
        other => panic!("{other}"),
    };
    let nobody = connect(&serving.kubeconfig_for("guessed")).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(nobody);
    assert_eq!(
        code(maps.list(&ListParams::default()).await.unwrap_err()),
        401
    );
    let token = server.token(Identity::user("joe", [""; 0]));
    let joe = connect(&serving.kubeconfig_for(&token)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(joe);
    assert_eq!(
        code(maps.list(&ListParams::default()).await.unwrap_err()),
        403
    );
}

#[tokio::test]
async fn the_kubeconfig_file_is_for_its_owner_alone() {
    let serving = server().serve(any_port()).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    serving.write_kubeconfig(&file, "default").unwrap();
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        serving.kubeconfig()
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

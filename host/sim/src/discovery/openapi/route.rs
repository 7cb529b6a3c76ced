//! Which requests a resource takes.

use std::collections::BTreeMap;

use super::operation::{
    ANY, CUSTOM_OBJECTS, CUSTOM_PATCHES, LOG, OBJECTS, Operation, PATCHES, Route, STREAMS, Shape,
    identifier, scope,
};
use super::parameter::{DELETE, LIST, Parameter, WRITE};
use super::schema;
use crate::kinds::{Subresource, Verbs};
use crate::resource::Resource;
use crate::types::META;

fn root(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    }
}

/// All paths of a resource.
pub(super) fn of(resource: &Resource) -> Vec<Route> {
    let of = Paths {
        resource,
        names: scope(&resource.group, &resource.version),
    };
    let mut routes: BTreeMap<String, Route> = BTreeMap::new();
    let mut add = |path: String, mut operation: Operation| {
        if path.contains("{namespace}") {
            let text = "The namespace of the object.".to_owned();
            operation
                .parameters
                .push(Parameter::path("namespace", text));
        }
        if path.contains("{name}") {
            let text = format!("name of the {}", resource.kind);
            operation.parameters.push(Parameter::path("name", text));
        }
        if path.ends_with("/{path}") {
            let text = "The path on the other side.".to_owned();
            operation.parameters.push(Parameter::path("path", text));
        }
        operation
            .parameters
            .sort_by_key(|parameter| (parameter.name, parameter.place));
        let route = routes.entry(path.clone());
        let route = route.or_insert_with(|| Route {
            path,
            operations: Vec::new(),
        });
        route.operations.push(operation);
    };
    of.objects(&mut add);
    for sub in &resource.subresources {
        of.subresource(sub, &mut add);
    }
    routes.into_values().collect()
}

/// The paths of one resource.
struct Paths<'a> {
    resource: &'a Resource,
    /// How its operations and its tag begin.
    names: (String, String),
}

impl Paths<'_> {
    fn is_custom(&self) -> bool {
        self.resource.is_custom()
    }

    /// `/api/v1/namespaces/{namespace}/pods`, for watches with `watch/` in it.
    fn many(&self, watch: &str) -> String {
        let (root, plural) = (root(self.resource), &self.resource.plural);
        match self.resource.namespaced {
            true => format!("{root}/{watch}namespaces/{{namespace}}/{plural}"),
            false => format!("{root}/{watch}{plural}"),
        }
    }

    fn objects(&self, add: &mut impl FnMut(String, Operation)) {
        let resource = self.resource;
        let kind = &resource.kind;
        let (many, one) = (self.many(""), self.many("") + "/{name}");
        let root = root(resource);
        let own = || Shape::Schema(schema::name(resource));
        let list = || vec![("200", "OK", Shape::Schema(schema::list_name(resource)))];
        let watch = || vec![("200", "OK", Shape::Schema(format!("{META}.WatchEvent")))];
        let ns = if resource.namespaced {
            "Namespaced"
        } else {
            ""
        };
        let reads = resource.verbs != Verbs::Create;
        let writes = resource.verbs != Verbs::Read;
        let changes = reads && writes;
        if reads {
            let what = if self.is_custom() || !writes {
                "list"
            } else {
                "list or watch"
            };
            let text = format!("{what} objects of kind {kind}");
            let mut operation = self.operation("get", "list", "list", &format!("{ns}{kind}"));
            operation.text.clone_from(&text);
            operation.answers = list();
            add(many.clone(), operation);
            if resource.namespaced {
                let name = format!("{kind}ForAllNamespaces");
                let mut operation = self.operation("get", "list", "list", &name);
                operation.text = text;
                operation.answers = list();
                add(format!("{root}/{}", resource.plural), operation);
            }
            let mut operation = self.operation("get", "get", "read", &format!("{ns}{kind}"));
            operation.text = format!("read the specified {kind}");
            operation.answers = vec![("200", "OK", own())];
            add(one.clone(), operation);
        }
        if writes {
            let mut operation = self.operation("post", "post", "create", &format!("{ns}{kind}"));
            operation.text = format!("create {} {kind}", article(kind));
            operation.answers = written(&own(), &["200", "202", "201"]);
            operation
                .parameters
                .push(Parameter::body(schema::name(resource), true));
            add(many.clone(), operation);
        }
        if changes {
            self.write(&one, "", &own(), &schema::name(resource), add);
            let gone = if resource.returns_deleted() {
                own()
            } else {
                status()
            };
            let mut operation =
                self.operation("delete", "delete", "delete", &format!("{ns}{kind}"));
            operation.text = format!("delete {} {kind}", article(kind));
            operation.answers = written(&gone, &["200", "202"]);
            add(one, operation);
        }
        if resource.verbs == Verbs::All {
            let name = format!("{ns}{kind}");
            let mut operation =
                self.operation("delete", "deletecollection", "deleteCollection", &name);
            operation.text = format!("delete collection of {kind}");
            operation.answers = vec![("200", "OK", status())];
            add(many, operation);
        }
        if changes && !self.is_custom() {
            let one = self.many("watch/") + "/{name}";
            let mut operation = self.operation("get", "watch", "watch", &format!("{ns}{kind}"));
            operation.text = format!("watch changes to an object of kind {kind}");
            operation.answers = watch();
            add(one, operation);
            let mut listed = vec![(self.many("watch/"), format!("{ns}{kind}List"))];
            if resource.namespaced {
                let all = format!("{root}/watch/{}", resource.plural);
                listed.push((all, format!("{kind}ListForAllNamespaces")));
            }
            for (path, name) in listed {
                let mut operation = self.operation("get", "watchlist", "watch", &name);
                operation.text = format!("watch individual changes to a list of {kind}");
                operation.answers = watch();
                add(path, operation);
            }
        }
    }

    /// Replacing and patching.
    fn write(
        &self,
        path: &str,
        sub: &str,
        answer: &Shape,
        body: &str,
        add: &mut impl FnMut(String, Operation),
    ) {
        let kind = &self.resource.kind;
        let name = format!("{}{kind}{}", self.ns(), identifier(sub, true));
        let of = if sub.is_empty() {
            String::new()
        } else {
            format!(" {sub} of")
        };
        let mut operation = self.operation("put", "put", "replace", &name);
        operation.text = format!("replace{of} the specified {kind}");
        operation.answers = written(answer, &["200", "201"]);
        operation
            .parameters
            .push(Parameter::body(body.to_owned(), true));
        add(path.to_owned(), operation);
        let mut operation = self.operation("patch", "patch", "patch", &name);
        operation.text = format!("partially update{of} the specified {kind}");
        let codes: &[_] = if self.is_custom() {
            &["200"]
        } else {
            &["200", "201"]
        };
        operation.answers = written(answer, codes);
        add(path.to_owned(), operation);
    }

    fn ns(&self) -> &'static str {
        if self.resource.namespaced {
            "Namespaced"
        } else {
            ""
        }
    }

    fn subresource(&self, sub: &Subresource, add: &mut impl FnMut(String, Operation)) {
        let resource = self.resource;
        let (kind, ns) = (&resource.kind, self.ns());
        let path = format!("{}/{{name}}/{}", self.many(""), sub.name);
        let gvk = match (sub.body, sub.name) {
            (Some((group, version, kind)), _) => (group.into(), version.into(), kind.into()),
            (None, "proxy") => (
                String::new(),
                "v1".to_owned(),
                format!("{kind}ProxyOptions"),
            ),
            (None, _) => own_kind(resource),
        };
        let mut add = |path: String, mut operation: Operation| {
            // Of a custom resource it is that of the resource.
            if !self.is_custom() {
                operation.kind = Some(gvk.clone());
            }
            add(path, operation);
        };
        let body = match sub.body {
            Some((group, version, kind)) => {
                schema::builtin(group, version, kind).unwrap_or_default()
            }
            None => schema::name(resource),
        };
        let title = identifier(sub.name, true);
        if let Some(options) = connected(sub.name) {
            let methods: &[_] = match sub.name {
                "proxy" => &["get", "put", "post", "delete", "options", "head", "patch"],
                _ => &["get", "post"],
            };
            for method in methods {
                let verb = method.to_uppercase();
                let name = format!("{}{ns}{kind}{title}", identifier(method, true));
                let mut operation = self.operation(method, "connect", "connect", &name);
                operation.text = format!("connect {verb} requests to {} of {kind}", sub.name);
                operation.answers = vec![("200", "OK", Shape::Text)];
                operation
                    .parameters
                    .extend(options.iter().map(|name| Parameter::query(name)));
                if sub.name == "proxy" {
                    let mut further = self.operation(method, "connect", "connect", &name);
                    further.id.push_str("WithPath");
                    further.text.clone_from(&operation.text);
                    further.answers.clone_from(&operation.answers);
                    further.parameters.clone_from(&operation.parameters);
                    add(format!("{path}/{{path}}"), further);
                }
                add(path.clone(), operation);
            }
            return;
        }
        let name = format!("{ns}{kind}{title}");
        let answer = || Shape::Schema(body.clone());
        if sub.verbs.contains(&"get") {
            let mut operation = self.operation("get", "get", "read", &name);
            operation.text = format!("read {} of the specified {kind}", sub.name);
            operation.answers = vec![("200", "OK", answer())];
            if sub.name == "log" {
                operation.answers = vec![("200", "OK", Shape::Text)];
                operation.produces = LOG;
                operation
                    .parameters
                    .extend(LOG_OPTIONS.iter().map(|name| Parameter::query(name)));
            }
            add(path.clone(), operation);
        }
        if sub.verbs.contains(&"update") {
            let mut found = Vec::new();
            self.write(&path, sub.name, &answer(), &body, &mut |path, operation| {
                found.push((path, operation));
            });
            for (path, operation) in found {
                let wanted = match operation.method {
                    "patch" => sub.verbs.contains(&"patch"),
                    _ => true,
                };
                if wanted {
                    add(path, operation);
                }
            }
        }
        if sub.verbs.contains(&"create") {
            let mut operation = self.operation("post", "post", "create", &name);
            operation.text = format!("create {} of {} {kind}", sub.name, article(kind));
            operation.answers = written(&answer(), &["200", "202", "201"]);
            operation
                .parameters
                .push(Parameter::body(body.clone(), true));
            add(path, operation);
        }
    }

    /// An operation without its meaning and its answers. `verb` is how its name begins,
    /// before group and version.
    fn operation(
        &self,
        method: &'static str,
        action: &'static str,
        verb: &str,
        name: &str,
    ) -> Operation {
        let custom = self.is_custom();
        let (prefix, tag) = &self.names;
        let id = match verb {
            "deleteCollection" => format!("delete{prefix}Collection{name}"),
            verb => format!("{verb}{prefix}{name}"),
        };
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut query = |names: &[&'static str]| {
            parameters.extend(names.iter().map(|name| Parameter::query(name)));
        };
        match action {
            "list" | "watch" | "watchlist" => query(LIST),
            "deletecollection" if custom => query(LIST),
            "deletecollection" => {
                query(DELETE);
                let unlike = |name: &&&str| !matches!(**name, "allowWatchBookmarks" | "watch");
                let names: Vec<&str> = LIST.iter().filter(unlike).copied().collect();
                query(&names);
            }
            "get" if custom => query(&["resourceVersion"]),
            "delete" => query(DELETE),
            "post" | "put" => query(WRITE),
            "patch" => {
                query(WRITE);
                query(&["force"]);
            }
            _ => {}
        }
        if action != "connect" {
            query(&["pretty"]);
        }
        match action {
            "delete" => parameters.push(Parameter::body(format!("{META}.DeleteOptions"), false)),
            "deletecollection" if !custom => {
                parameters.push(Parameter::body(format!("{META}.DeleteOptions"), false));
            }
            "patch" => parameters.push(Parameter::body(format!("{META}.Patch"), true)),
            _ => {}
        }
        let (consumes, produces) = match (action, custom) {
            ("connect", _) => (ANY, ANY),
            ("patch", true) => (CUSTOM_PATCHES, CUSTOM_OBJECTS),
            (_, true) => (CUSTOM_OBJECTS, CUSTOM_OBJECTS),
            ("patch", false) => (PATCHES, OBJECTS),
            ("list" | "watch" | "watchlist", false) => (ANY, STREAMS),
            (_, false) => (ANY, OBJECTS),
        };
        Operation {
            method,
            action,
            id,
            tag: tag.clone(),
            text: String::new(),
            kind: Some(own_kind(self.resource)),
            parameters,
            consumes,
            produces,
            answers: Vec::new(),
        }
    }
}

const LOG_OPTIONS: &[&str] = &[
    "container",
    "follow",
    "insecureSkipTLSVerifyBackend",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "stream",
    "tailLines",
    "timestamps",
];

/// What can be said of connections to a subresource, where it has any.
fn connected(sub: &str) -> Option<&'static [&'static str]> {
    match sub {
        "attach" => Some(&["container", "stderr", "stdin", "stdout", "tty"]),
        "exec" => Some(&["command", "container", "stderr", "stdin", "stdout", "tty"]),
        "portforward" => Some(&["ports"]),
        "proxy" => Some(&["path"]),
        _ => None,
    }
}

fn own_kind(resource: &Resource) -> (String, String, String) {
    let Resource {
        group,
        version,
        kind,
        ..
    } = resource;
    (group.clone(), version.clone(), kind.clone())
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
        "an"
    } else {
        "a"
    }
}

fn status() -> Shape {
    Shape::Schema(format!("{META}.Status"))
}

fn written(shape: &Shape, codes: &[&'static str]) -> Vec<(&'static str, &'static str, Shape)> {
    let meaning = |code| match code {
        "201" => "Created",
        "202" => "Accepted",
        _ => "OK",
    };
    codes
        .iter()
        .map(|code| (*code, meaning(*code), shape.clone()))
        .collect()
}

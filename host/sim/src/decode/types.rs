//! The types that built-in kinds are decoded into.
//!
//! `types.txt` is written by `examples/go_types.rs` from the published Go types:
//!
//! ```text
//! apps/v1.DeploymentSpec
//!  replicas int32
//!  template core/v1.PodTemplateSpec
//! core/v1.Volume
//!  name string
//!  ~ core/v1.VolumeSource
//! core/v1.Protocol = string
//! ```
//!
//! A type is a struct with indented fields, where `~` takes in those of another, or
//! `=` another type. Types in fields: the basic ones of Go, `bytes`, `[]T`, `{K}T` for
//! a map, or the name of a type with the last two parts of its package. Behind the
//! type: `!` when the field is written even when it is empty, and how a strategic
//! patch merges it: `+key` for a list whose items have that key, `+` for a set, `-` for
//! what is replaced as a whole.

use std::sync::LazyLock;

use foldhash::{HashMap, HashMapExt as _};

use super::time::TimeForm;

const TEXT: &str = include_str!("types.txt");

/// A type, as it stands in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Type(&'static str);

/// The fields of a struct.
pub(crate) type Fields = HashMap<&'static str, Field>;

/// A field of a struct.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// The type of its value.
    pub(crate) ty: Type,
    /// Whether an empty list is something else than none.
    pub(super) keeps_empty: bool,
    /// How a strategic patch merges it.
    pub(crate) merging: Merging,
}

/// How a strategic patch merges a field with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Merging {
    /// A map by its keys, a list as a whole.
    #[default]
    Usual,
    /// A list item by item, which this field of theirs tells apart.
    ByKey(&'static str),
    /// A list as a set of plain values.
    Set,
    /// As a whole.
    Replace,
}

impl Merging {
    /// Whether a list is merged item by item.
    pub(crate) fn is_of_items(self) -> bool {
        matches!(self, Merging::ByKey(_) | Merging::Set)
    }
}

impl Field {
    /// Reads what follows the name of a field.
    fn parse(text: &'static str) -> Self {
        let mut words = text.split(' ');
        let mut field = Field {
            ty: Type(words.next().unwrap_or_default()),
            keeps_empty: false,
            merging: Merging::Usual,
        };
        for word in words {
            match (word, word.strip_prefix('+')) {
                ("!", _) => field.keeps_empty = true,
                ("-", _) => field.merging = Merging::Replace,
                (_, Some("")) => field.merging = Merging::Set,
                (_, Some(key)) => field.merging = Merging::ByKey(key),
                _ => {}
            }
        }
        field
    }
}

/// What a type is.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A text.
    Text,
    /// True or false.
    Bool,
    /// An integer between two bounds.
    Integer(i64, i64),
    /// A number.
    Float,
    /// Bytes, as base64.
    Bytes,
    /// Any value, as it comes.
    Any,
    /// A number or a text.
    IntOrText,
    /// A number with a unit; checked elsewhere.
    Quantity,
    /// A time, in whole seconds or not.
    Time(TimeForm),
    /// A list of one type.
    List(Type),
    /// A map to one type.
    Map(Type),
    /// Fields, each of its own type.
    Struct(&'static Fields),
}

enum Definition {
    Struct(Vec<(&'static str, Field)>),
    Alias(Type),
}

static DEFINITIONS: LazyLock<HashMap<&'static str, Definition>> = LazyLock::new(|| {
    let mut definitions = HashMap::new();
    let mut current = "";
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix(' ') {
            if let Some(Definition::Struct(fields)) = definitions.get_mut(current)
                && let Some((name, rest)) = field.split_once(' ')
            {
                fields.push((name, Field::parse(rest)));
            }
        } else if let Some((name, target)) = line.split_once(" = ") {
            definitions.insert(name, Definition::Alias(Type(target)));
        } else {
            current = line;
            definitions.insert(current, Definition::Struct(Vec::new()));
        }
    }
    definitions
});

static STRUCTS: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(|| {
    let mut structs = HashMap::new();
    for (name, definition) in DEFINITIONS.iter() {
        if let Definition::Struct(_) = definition {
            let mut fields = Fields::new();
            collect(name, &mut fields);
            structs.insert(*name, fields);
        }
    }
    structs
});

fn collect(name: &str, fields: &mut Fields) {
    let Some(Definition::Struct(own)) = DEFINITIONS.get(name) else {
        return;
    };
    for (name, field) in own {
        if *name == "~" {
            collect(field.ty.0, fields);
        }
    }
    let named = own.iter().filter(|(field, _)| *field != "~");
    fields.extend(named.copied());
}

/// The type of that name.
pub(super) fn named(name: &str) -> Option<Type> {
    STRUCTS.get_key_value(name).map(|(name, _)| Type(name))
}

/// The type of a kind: `core/v1.Pod` for `v1` and `Pod`, `rbac/v1.Role` for
/// `rbac.authorization.k8s.io/v1` and `Role`.
pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<Type> {
    if kind == "DeleteOptions" {
        return named("meta/v1.DeleteOptions");
    }
    let (group, version) = api_version
        .rsplit_once('/')
        .unwrap_or(("core", api_version));
    let package = group.split('.').next().unwrap_or_default();
    let own = named(&format!("{package}/{version}.{kind}"));
    // Such as Status, which is of every group.
    own.or_else(|| named(&format!("meta/{version}.{kind}")))
}

impl Type {
    /// What the type is.
    pub(crate) fn shape(self) -> Shape {
        let text = self.0;
        match text {
            "string" => return Shape::Text,
            "bool" => return Shape::Bool,
            "int32" => return Shape::Integer(i64::from(i32::MIN), i64::from(i32::MAX)),
            "int" | "int64" => return Shape::Integer(i64::MIN, i64::MAX),
            "float64" => return Shape::Float,
            "bytes" => return Shape::Bytes,
            "types.UID" | "meta/v1.Duration" => return Shape::Text,
            "intstr.IntOrString" => return Shape::IntOrText,
            "resource.Quantity" => return Shape::Quantity,
            "meta/v1.Time" => return Shape::Time(TimeForm::Seconds),
            "meta/v1.MicroTime" => return Shape::Time(TimeForm::Micros),
            // These read themselves.
            "interface{}"
            | "runtime.RawExtension"
            | "meta/v1.FieldsV1"
            | "apiextensions/v1.JSON"
            | "apiextensions/v1.JSONSchemaPropsOrArray"
            | "apiextensions/v1.JSONSchemaPropsOrBool"
            | "apiextensions/v1.JSONSchemaPropsOrStringArray" => return Shape::Any,
            _ => {}
        }
        if let Some(item) = text.strip_prefix("[]") {
            return Shape::List(Type(item));
        }
        if let Some((_, value)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
            return Shape::Map(Type(value));
        }
        match (DEFINITIONS.get(text), STRUCTS.get(text)) {
            (Some(Definition::Alias(target)), _) => target.shape(),
            (_, Some(fields)) => Shape::Struct(fields),
            _ => Shape::Any,
        }
    }

    /// The type as Go prints it: `[]v1.Container`, `map[string]string`.
    pub(super) fn go_name(self) -> String {
        let text = self.0;
        if text == "bytes" {
            return "[]uint8".to_owned();
        }
        if text == "intstr.IntOrString" {
            return "int32".to_owned();
        }
        if let Some(item) = text.strip_prefix("[]") {
            return format!("[]{}", Type(item).go_name());
        }
        if let Some((key, value)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
            return format!("map[{}]{}", short(key), Type(value).go_name());
        }
        short(text).to_owned()
    }

    /// The name without its package: `Container`.
    pub(crate) fn bare_name(self) -> &'static str {
        self.0.rsplit_once('.').map_or(self.0, |(_, name)| name)
    }
}

/// `v1.Container` for `core/v1.Container`.
fn short(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_type_and_every_type_is_known() {
        for kind in crate::kinds::all() {
            let ty = of_kind(&kind.api_version(), kind.kind);
            assert!(ty.is_some(), "{} {}", kind.api_version(), kind.kind);
        }
        for fields in STRUCTS.values() {
            for (name, field) in fields {
                let ty = field.ty;
                let is_open = matches!(ty.shape(), Shape::Any);
                let known = DEFINITIONS.contains_key(ty.0) || !ty.0.contains('/');
                assert!(!is_open || known, "{name} {}", ty.0);
            }
        }
    }

    #[test]
    fn fields_say_how_they_merge() {
        let check = |ty: &str, field: &str, expected: Merging| {
            let Some(Shape::Struct(fields)) = named(ty).map(Type::shape) else {
                panic!("no struct {ty}");
            };
            assert_eq!(fields[field].merging, expected, "{ty}.{field}");
        };
        check("core/v1.PodSpec", "containers", Merging::ByKey("name"));
        check("core/v1.Container", "env", Merging::ByKey("name"));
        check("core/v1.Container", "args", Merging::Usual);
        check("meta/v1.ObjectMeta", "finalizers", Merging::Set);
        let budget = "policy/v1.PodDisruptionBudgetSpec";
        check(budget, "selector", Merging::Replace);
        check("discovery/v1.EndpointSlice", "ports", Merging::Usual);
    }

    #[test]
    fn types_read_as_go_prints_them() {
        let check = |ty: &'static str, expected: &str| assert_eq!(Type(ty).go_name(), expected);
        check("[]core/v1.Container", "[]v1.Container");
        check("{string}string", "map[string]string");
        check(
            "{core/v1.ResourceName}resource.Quantity",
            "map[v1.ResourceName]resource.Quantity",
        );
        check("int32", "int32");
    }
}

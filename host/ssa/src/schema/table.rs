//! Reading of the compact type table, one line a field.
//!
//! ```text
//! kind apps/v1 Deployment apps.v1.Deployment
//!
//! core.v1.ServiceSpec
//!   ports [port,protocol]core.v1.ServicePort
//!   selector {!}string
//! core.v1.ServicePort
//!   port number +0 =0
//!   protocol string - ="TCP"
//! meta.v1.Time = scalar
//! ```
//!
//! A type is a struct with indented fields (`atomic` behind its name when it
//! is taken whole), or `=` another type. Types in fields:
//! `string`, `number`, `boolean`, `scalar` (any of them), `quantity` (any of them,
//! kept as an amount), `any` (unknown: maps
//! granular, lists atomic), `opaque` (unknown, taken whole), `[]T` atomic list,
//! `[=]T` set, `[a,b]T` list keyed by a and b, `{}T` granular map, `{!}T`
//! atomic map, or the name of a type, with `!` behind it when the field makes
//! it atomic and `~` when the field makes it granular. Behind the type: `+` and
//! the value that the field has when nobody set it, as JSON; `-` when the field
//! is left out while it is zero; `=` and its default as JSON.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Atom, DEDUCED, List, ListKey, ListRelation, Map, Scalar, Schema, TypeRef, UNTYPED_ATOMIC,
    base_types,
};

/// The table, indexed by name but not yet converted.
pub(crate) struct Table<'t> {
    /// Type name by group/version and kind.
    pub(crate) kinds: BTreeMap<(&'t str, &'t str), &'t str>,
    definitions: BTreeMap<&'t str, Definition<'t>>,
}

struct Definition<'t> {
    atomic: bool,
    alias: Option<&'t str>,
    fields: Vec<Field<'t>>,
}

struct Field<'t> {
    name: &'t str,
    ty: &'t str,
    present: Option<Value>,
    dropped: bool,
    default: Option<Value>,
}

impl<'t> Field<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (line, default) = match line.split_once(" =") {
            Some((line, default)) => (line, Some(default)),
            None => (line, None),
        };
        let mut parts = line.split(' ');
        let mut field = Field {
            name: parts.next()?,
            ty: parts.next()?,
            present: None,
            dropped: false,
            default: default.and_then(|json| serde_json::from_str(json).ok()),
        };
        for part in parts {
            match part.strip_prefix('+') {
                Some(json) => field.present = serde_json::from_str(json).ok(),
                None => field.dropped = part == "-",
            }
        }
        Some(field)
    }
}

impl<'t> Table<'t> {
    /// Indexes the text. Lines that do not follow the grammar are left out;
    /// a test of the checked-in table sees to it that there are none.
    pub(crate) fn parse(text: &'t str) -> Self {
        let mut table = Table {
            kinds: BTreeMap::new(),
            definitions: BTreeMap::new(),
        };
        let mut current = "";
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(field) = line.strip_prefix("  ") {
                let definition = table.definitions.get_mut(current);
                if let (Some(field), Some(definition)) = (Field::parse(field), definition) {
                    definition.fields.push(field);
                }
                continue;
            }
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["kind", version, kind, ty] => {
                    table.kinds.insert((version, kind), ty);
                }
                [name, ref rest @ ..] if !name.is_empty() => {
                    current = name;
                    table.definitions.insert(
                        name,
                        Definition {
                            atomic: rest == ["atomic"],
                            alias: rest
                                .strip_prefix(&["="])
                                .and_then(|rest| rest.first())
                                .copied(),
                            fields: Vec::new(),
                        },
                    );
                }
                _ => {}
            }
        }
        table
    }

    /// Lines that are not in the table, and names that it does not define.
    #[cfg(test)]
    pub(crate) fn problems(&self, text: &str) -> Vec<String> {
        let basic = [
            "any", "opaque", "string", "number", "boolean", "scalar", "quantity",
        ];
        let mut problems = Vec::new();
        let mut check = |ty: &str| {
            let name = ty
                .rsplit([']', '}'])
                .next()
                .unwrap_or(ty)
                .trim_end_matches(['!', '~']);
            if !basic.contains(&name) && !self.definitions.contains_key(name) {
                problems.push(format!("no type {name}"));
            }
        };
        self.kinds.values().for_each(|ty| check(ty));
        for definition in self.definitions.values() {
            definition.alias.iter().for_each(|ty| check(ty));
            definition.fields.iter().for_each(|field| check(field.ty));
        }
        let fields: usize = self.definitions.values().map(|d| d.fields.len()).sum();
        let read = self.kinds.len() + self.definitions.len() + fields;
        let lines = text.lines().filter(|line| !line.starts_with('#')).count();
        if read != lines {
            problems.push(format!("{read} of {lines} lines read"));
        }
        problems
    }

    /// The schema of one named type, holding only the types it needs.
    pub(crate) fn schema(&self, name: &str) -> Schema {
        let mut types = base_types();
        let root = self.instantiate(name, &mut types);
        Schema { types, root }
    }

    /// Adds a named type and all it refers to.
    pub(crate) fn instantiate(&self, name: &str, types: &mut Vec<Atom>) -> TypeRef {
        Instance {
            table: self,
            types,
            placed: BTreeMap::new(),
        }
        .expression(name)
    }
}

struct Instance<'a, 't> {
    table: &'a Table<'t>,
    types: &'a mut Vec<Atom>,
    /// Where each expression went, also while it is being converted: types
    /// such as the schema of a custom resource contain themselves.
    placed: BTreeMap<String, TypeRef>,
}

impl Instance<'_, '_> {
    fn expression(&mut self, text: &str) -> TypeRef {
        match text {
            "any" => return DEDUCED,
            "opaque" => return UNTYPED_ATOMIC,
            _ => {}
        }
        if let Some(ty) = self.placed.get(text) {
            return *ty;
        }
        let index = self.types.len();
        let ty = TypeRef(u32::try_from(index).unwrap_or(DEDUCED.0));
        self.types.push(Atom::default());
        self.placed.insert(text.to_owned(), ty);
        let atom = self.convert(text);
        self.types[index] = atom;
        ty
    }

    fn convert(&mut self, text: &str) -> Atom {
        let scalar = |scalar| Atom {
            scalar: Some(scalar),
            ..Atom::default()
        };
        match text {
            "string" => return scalar(Scalar::String),
            "number" => return scalar(Scalar::Numeric),
            "boolean" => return scalar(Scalar::Boolean),
            "scalar" => return scalar(Scalar::Untyped),
            "quantity" => return scalar(Scalar::Quantity),
            _ => {}
        }
        if let Some((relation, element)) = split(text, '[', ']') {
            return self.list(relation, element);
        }
        if let Some((mark, element)) = split(text, '{', '}') {
            return Atom {
                map: Some(Map {
                    element: Some(self.expression(element)),
                    atomic: mark == "!",
                    native: true,
                    ..Map::default()
                }),
                ..Atom::default()
            };
        }
        let (name, atomic) = match (text.strip_suffix('!'), text.strip_suffix('~')) {
            (Some(name), _) => (name, Some(true)),
            (_, Some(name)) => (name, Some(false)),
            _ => (text, None),
        };
        let mut atom = self.named(name);
        if let (Some(map), Some(atomic)) = (&mut atom.map, atomic) {
            map.atomic = atomic;
        }
        atom
    }

    fn named(&mut self, name: &str) -> Atom {
        let table = self.table;
        let Some(definition) = table.definitions.get(name) else {
            return base_types().swap_remove(DEDUCED.0 as usize);
        };
        if let Some(alias) = definition.alias {
            return match alias {
                "any" => self.types[DEDUCED.0 as usize].clone(),
                "opaque" => self.types[UNTYPED_ATOMIC.0 as usize].clone(),
                _ => self.convert(alias),
            };
        }
        let mut map = Map {
            atomic: definition.atomic,
            native: true,
            ..Map::default()
        };
        for field in &definition.fields {
            let ty = self.expression(field.ty);
            map.fields.insert(field.name.to_owned(), ty);
            if let Some(zero) = &field.present {
                map.zero.insert(field.name.to_owned(), zero.clone());
            }
            if field.dropped {
                map.dropped.insert(field.name.to_owned());
            }
        }
        Atom {
            map: Some(map),
            ..Atom::default()
        }
    }

    fn list(&mut self, relation: &str, element: &str) -> Atom {
        let relation = match relation {
            "" => ListRelation::Atomic,
            "=" => ListRelation::Set,
            keys => {
                let item = self.table.definitions.get(element);
                let default = |key: &str| {
                    item.and_then(|item| item.fields.iter().find(|field| field.name == key))
                        .and_then(|field| field.default.clone())
                        .filter(|default| !default.is_null())
                };
                ListRelation::Keyed(
                    keys.split(',')
                        .map(|key| ListKey {
                            name: key.to_owned(),
                            default: default(key),
                        })
                        .collect(),
                )
            }
        };
        Atom {
            list: Some(List {
                element: self.expression(element),
                relation,
            }),
            ..Atom::default()
        }
    }
}

/// `[inside]rest` as (inside, rest).
fn split(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    text.strip_prefix(open)?.split_once(close)
}

//! What the check of an expression found out about its parts, each by its number.

use std::collections::HashMap;

use super::functions::Overload;
use super::types::{Bindings, Type};

/// What is known of the parts of an expression.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    types: HashMap<u64, Type>,
    calls: HashMap<u64, Chosen>,
    names: HashMap<u64, String>,
}

/// The function that a call is of.
#[derive(Debug)]
pub(super) struct Chosen {
    /// What it is called, with the name of its library.
    pub(super) name: String,
    /// The ways to call it that fit the arguments.
    pub(super) overloads: Vec<&'static Overload>,
}

impl Facts {
    /// The type of a part.
    pub(super) fn ty(&self, id: u64) -> &Type {
        self.types.get(&id).unwrap_or(&Type::Dyn)
    }

    /// The function of a call; none of what is no function of the table.
    pub(super) fn call(&self, id: u64) -> Option<&Chosen> {
        self.calls.get(&id)
    }

    /// What a selection with dots is the name of, where it is one.
    pub(super) fn name(&self, id: u64) -> Option<&str> {
        self.names.get(&id).map(String::as_str)
    }

    pub(super) fn has_type(&mut self, id: u64, ty: &Type) {
        self.types.insert(id, ty.clone());
    }

    pub(super) fn has_name(&mut self, id: u64, name: String) {
        self.names.insert(id, name);
    }

    pub(super) fn calls(&mut self, id: u64, name: &str, overloads: Vec<&'static Overload>) {
        let name = name.to_owned();
        self.calls.insert(id, Chosen { name, overloads });
    }

    /// The same, with what has turned out about the types.
    pub(super) fn settled(mut self, bindings: &Bindings) -> Self {
        for ty in self.types.values_mut() {
            *ty = bindings.settle(ty);
        }
        self
    }
}

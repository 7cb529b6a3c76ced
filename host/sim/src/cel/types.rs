//! The types of expressions, and which of them go together.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// Any, known when the expression is evaluated.
    Dyn,
    /// That of a part which is wrong, and has been complained about.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    /// A type as a value.
    Meta(Arc<Type>),
    List(Arc<Type>),
    /// A map from one to the other.
    Map(Arc<Type>, Arc<Type>),
    /// What may be absent.
    Optional(Arc<Type>),
    /// Known fields.
    Object(Arc<Object>),
    /// A value of which nothing but its functions is known.
    Opaque(&'static str),
    /// Whatever it turns out to be.
    Variable(usize),
}

/// A type with fields; those of one name are one type.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// The name.
    pub(crate) name: String,
    /// The fields, as expressions call them.
    pub(crate) fields: BTreeMap<String, Type>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Type {
    /// A list of `item`.
    pub(crate) fn list(item: Type) -> Self {
        Type::List(Arc::new(item))
    }

    /// A map from texts to `value`.
    pub(crate) fn map(value: Type) -> Self {
        Type::Map(Arc::new(Type::Text), Arc::new(value))
    }

    /// A `value` that may be absent.
    pub(crate) fn optional(value: Type) -> Self {
        Type::Optional(Arc::new(value))
    }

    /// An object with these fields.
    pub(crate) fn object<'n>(
        name: &str,
        fields: impl IntoIterator<Item = (&'n str, Type)>,
    ) -> Self {
        let fields = fields.into_iter();
        Type::Object(Arc::new(Object {
            name: name.to_owned(),
            fields: fields.map(|(name, ty)| (name.to_owned(), ty)).collect(),
        }))
    }

    /// Whether nothing can be said against it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Whether null may stand for it.
    fn is_nullable(&self) -> bool {
        matches!(
            self,
            Type::Null
                | Type::Object(_)
                | Type::Opaque(_)
                | Type::Optional(_)
                | Type::Timestamp
                | Type::Duration
        )
    }

    /// The types that it is made of.
    fn parts(&self) -> Vec<&Type> {
        match self {
            Type::List(a) | Type::Optional(a) | Type::Meta(a) => vec![a.as_ref()],
            Type::Map(a, b) => vec![a.as_ref(), b.as_ref()],
            _ => Vec::new(),
        }
    }

    /// The same with other parts.
    pub(super) fn with_parts(&self, part: impl Fn(&Type) -> Type) -> Type {
        match self {
            Type::List(a) => Type::List(Arc::new(part(a))),
            Type::Optional(a) => Type::Optional(Arc::new(part(a))),
            Type::Meta(a) => Type::Meta(Arc::new(part(a))),
            Type::Map(a, b) => Type::Map(Arc::new(part(a)), Arc::new(part(b))),
            plain => plain.clone(),
        }
    }

    /// Whether it says no more than the other.
    fn is_as_general(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Dyn | Type::Variable(_), _) => true,
            (_, Type::Dyn | Type::Variable(_)) => false,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                a.is_as_general(b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => a.is_as_general(c) && b.is_as_general(d),
            (Type::Meta(_), Type::Meta(_)) => true,
            _ => self == other,
        }
    }

    /// The one of two types that go together which says less.
    pub(super) fn more_general(self, other: Type) -> Type {
        if self.is_as_general(&other) {
            self
        } else {
            other
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Type::Dyn => "dyn",
            Type::Error => "!error!",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::Text => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::Meta(_) => "type",
            Type::List(_) => "list",
            Type::Map(..) => "map",
            Type::Optional(_) => "optional_type",
            Type::Object(object) => object.name.as_str(),
            Type::Opaque(name) => *name,
            Type::Variable(number) => return write!(f, "_var{number}"),
        };
        f.write_str(name)?;
        let parts: Vec<String> = self.parts().iter().map(ToString::to_string).collect();
        if parts.is_empty() {
            return Ok(());
        }
        write!(f, "({})", parts.join(", "))
    }
}

/// How many types the check of an expression looks at, with those that they are made of. The
/// longest rules that people write come to some ten thousand.
const MOST_STEPS: usize = 1_000_000;

/// What variables have turned out to be so far.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    types: Vec<Option<Type>>,
    /// How many types were looked at, with those that they are made of.
    looked_at: Cell<usize>,
    /// What was there before what is being tried.
    before: Vec<(usize, Option<Type>)>,
}

impl Bindings {
    /// Room for so many more variables, the first of which is the answer.
    pub(super) fn fresh(&mut self, count: usize) -> usize {
        let first = self.types.len();
        self.types.resize(first + count, None);
        first
    }

    /// Whether there have been too many steps: types that are made of each other twice can take
    /// twice as many with each that is added.
    fn is_spent(&self) -> bool {
        let looked_at = self.looked_at.get();
        self.looked_at.set(looked_at.saturating_add(1));
        looked_at >= MOST_STEPS
    }

    fn bound(&self, variable: usize) -> Option<&Type> {
        self.types.get(variable)?.as_ref()
    }

    /// Whether values of one type may stand where the other is wanted, for each of two
    /// lists. What variables turn out to be is noted only then.
    pub(super) fn unify_all<'t>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'t Type, &'t Type)>,
    ) -> bool {
        self.before.clear();
        let fits = pairs.into_iter().all(|(a, b)| self.fits(a, b));
        if !fits {
            while let Some((variable, ty)) = self.before.pop() {
                if let Some(slot) = self.types.get_mut(variable) {
                    *slot = ty;
                }
            }
        }
        fits
    }

    /// As [`Bindings::unify_all`], of one pair.
    pub(super) fn unify(&mut self, one: &Type, other: &Type) -> bool {
        self.unify_all([(one, other)])
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Variable(variable) = other {
            let (fits, was_bound) = self.bind(one, *variable);
            if fits || was_bound {
                return fits;
            }
        }
        if let Type::Variable(variable) = one {
            return self.bind(other, *variable).0;
        }
        if one.is_open() || other.is_open() || self.is_spent() {
            return true;
        }
        match (one, other) {
            (Type::Null, ty) | (ty, Type::Null) => ty.is_nullable(),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
                self.fits(a, b)
            }
            (Type::Map(a, b), Type::Map(c, d)) => self.fits(a, c) && self.fits(b, d),
            _ => one == other,
        }
    }

    /// Whether a variable can be of a type, and whether it was of one before.
    fn bind(&mut self, ty: &Type, variable: usize) -> (bool, bool) {
        if *ty == Type::Variable(variable) {
            return (true, true);
        }
        let Some(present) = self.bound(variable).cloned() else {
            let possible = !self.occurs(variable, ty);
            if possible {
                self.set(variable, ty.clone());
            }
            return (possible, false);
        };
        if *ty == present {
            return (true, true);
        }
        let fits = self.fits(ty, &present);
        if fits {
            let general = ty.clone().more_general(present);
            if !self.occurs(variable, &general) {
                self.set(variable, general);
            }
        }
        (fits, true)
    }

    fn set(&mut self, variable: usize, ty: Type) {
        if let Some(slot) = self.types.get_mut(variable) {
            self.before.push((variable, slot.replace(ty)));
        }
    }

    /// Whether a type is made of a variable.
    fn occurs(&self, variable: usize, ty: &Type) -> bool {
        match ty {
            _ if self.is_spent() => true,
            Type::Variable(other) if *other == variable => true,
            Type::Variable(other) => {
                let bound = self.bound(*other);
                bound.is_some_and(|bound| self.occurs(variable, bound))
            }
            other => other.parts().iter().any(|part| self.occurs(variable, part)),
        }
    }

    /// The type with what is known of its variables; any, where that would be too much to say.
    pub(super) fn resolve(&self, ty: &Type) -> Type {
        match ty {
            _ if self.is_spent() => Type::Dyn,
            Type::Variable(variable) => match self.bound(*variable) {
                Some(bound) => self.resolve(bound),
                None => ty.clone(),
            },
            other => other.with_parts(|part| self.resolve(part)),
        }
    }

    /// As [`Bindings::resolve`]; what is not known may be anything.
    pub(super) fn settle(&self, ty: &Type) -> Type {
        fn settled(ty: &Type) -> Type {
            match ty {
                Type::Variable(_) => Type::Dyn,
                other => other.with_parts(settled),
            }
        }
        settled(&self.resolve(ty))
    }
}

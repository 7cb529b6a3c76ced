//! Validation of objects against a schema, with the server's texts.

mod types;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Number, Value, json};

use self::types::{compare, is_integer, is_multiple, name_of, type_of};
use super::format;
use super::structural::{Kind, ListType, Schema};
use crate::cel::Budget;
use crate::field::{ErrorType, Errors, FieldError, Path};
use crate::kinds::{ObjectMetaRules, validate_meta};

/// The path of errors that the server knows no path for.
const NOWHERE: Path<'static> = Path::new("<nil>");

impl Schema {
    /// Says what is wrong with an object, and with the change from `old`.
    pub fn validate(&self, object: &Value, old: Option<&Value>, errors: &mut Errors) {
        self.validate_beside(object, old, Errors::new(), errors);
    }

    /// As [`Schema::validate`], where something else was looked at, too, and `beside`
    /// is what was wrong with that.
    pub(crate) fn validate_beside(
        &self,
        object: &Value,
        old: Option<&Value>,
        beside: Errors,
        errors: &mut Errors,
    ) {
        let mut found = Errors::new();
        self.check(&Path::ROOT, object, old, &mut found);
        found.extend(beside);
        self.check_whole(object, old, found, errors);
    }

    /// As [`Schema::validate_beside`], where only the status was written: of the rest,
    /// values are not looked at again, and texts name places inside of the status.
    pub(crate) fn validate_status(
        &self,
        object: &Value,
        old: Option<&Value>,
        beside: Errors,
        errors: &mut Errors,
    ) {
        let mut found = Errors::new();
        if let (Some(schema), Some(status)) = (self.field("status"), object.get("status")) {
            let before = old.and_then(|old| old.get("status"));
            schema.check(&Path::ROOT, status, before, &mut found);
        }
        let mut named = Errors::new();
        named.extend(found.into_iter().map(|mut error| {
            if error.field.is_empty() {
                error.field.push_str("status");
            } else if error.field != NOWHERE.to_string() {
                error.field.insert_str(0, "status.");
            }
            error
        }));
        named.extend(beside);
        self.check_whole(object, old, named, errors);
    }

    /// What only shows when the whole object is looked at.
    fn check_whole(
        &self,
        object: &Value,
        old: Option<&Value>,
        mut found: Errors,
        errors: &mut Errors,
    ) {
        let mut listed = Errors::new();
        self.check_lists(&Path::ROOT, object, &mut listed);
        if !listed.is_empty() && !old.is_some_and(|old| self.has_wrong_lists(old)) {
            found.extend(listed);
        }
        self.check_embedded(&Path::ROOT, object, &mut found);
        let blocked = found.iter().any(|error| {
            matches!(
                error.kind,
                ErrorType::Required
                    | ErrorType::TooLong
                    | ErrorType::TooMany
                    | ErrorType::NotSupported
                    | ErrorType::TypeInvalid
            )
        });
        if self.has_rules && blocked {
            found.push(FieldError::invalid(
                &NOWHERE,
                &Value::Null,
                "some validation rules were not checked because the object was invalid; correct \
                 the existing errors to complete validation",
            ));
        } else if self.has_rules {
            let unchanged = old == Some(object);
            let mut budget = Budget::of_object();
            self.check_rules(&Path::ROOT, object, old, unchanged, &mut budget, &mut found);
        }
        // The object as a whole is no field.
        errors.extend(found.into_iter().map(|mut error| {
            if error.field.is_empty() {
                error.field = NOWHERE.to_string();
            }
            error
        }));
    }

    /// As [`Schema::validate`], for a part of an object.
    pub(super) fn validate_value(&self, path: &Path<'_>, value: &Value, errors: &mut Errors) {
        self.check(path, value, None, errors);
        self.check_lists(path, value, errors);
        let mut budget = Budget::of_object();
        self.check_rules(path, value, None, false, &mut budget, errors);
    }

    /// Checks a value and what is in it. What was so before, in a place that can be
    /// told from others, is not held against who changes something else: the schema
    /// may have become stricter since.
    fn check(&self, path: &Path<'_>, value: &Value, old: Option<&Value>, errors: &mut Errors) {
        if old == Some(value) || (value.is_null() && self.nullable) {
            return;
        }
        if !self.is_of_type(value) {
            let wanted = if self.int_or_string {
                "integer,string"
            } else {
                name_of(self.kind)
            };
            let found = json!(type_of(value));
            errors.push(FieldError::type_invalid(
                path,
                &found,
                format!("{path} in body must be of type {wanted}: {found}"),
            ));
            // It is none of the values, either.
            self.check_enum(path, value, errors);
            self.check_junctors(path, value, errors);
            return;
        }
        self.check_enum(path, value, errors);
        match value {
            Value::String(text) => self.check_text(path, text, errors),
            Value::Number(number) => self.check_number(path, number, errors),
            Value::Array(list) => {
                self.check_list(path, list, errors);
                if let Some(schema) = &self.items {
                    let past = Past::of(self, old);
                    for (index, item) in list.iter().enumerate() {
                        schema.check(&path.index(index), item, past.item(self, item), errors);
                    }
                }
            }
            Value::Object(fields) => {
                self.check_object(path, fields.len(), errors);
                for (name, value) in fields {
                    if let Some(schema) = self.field(name) {
                        let old = old.and_then(|old| old.get(name));
                        schema.check(&path.child(name), value, old, errors);
                    }
                }
                self.check_required(path, value, errors);
            }
            _ => {}
        }
        self.check_junctors(path, value, errors);
    }

    fn is_of_type(&self, value: &Value) -> bool {
        if self.int_or_string {
            return matches!(value, Value::String(_)) || is_integer(value);
        }
        match self.kind {
            Kind::Any => true,
            Kind::Object => value.is_object(),
            Kind::Array => value.is_array(),
            Kind::String => value.is_string(),
            Kind::Integer => is_integer(value),
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
        }
    }

    fn check_enum(&self, path: &Path<'_>, value: &Value, errors: &mut Errors) {
        let values = &self.limits.values;
        if values.is_empty() || values.contains(value) {
            return;
        }
        let supported: Vec<String> = values
            .iter()
            .map(|value| match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })
            .collect();
        errors.push(FieldError::not_supported(path, value, &supported));
    }

    fn check_text(&self, path: &Path<'_>, text: &str, errors: &mut Errors) {
        let limits = &self.limits;
        let length = text.chars().count();
        // Of these, the first that is wrong is said.
        if let Some(max) = limits.max_length.filter(|max| length > *max) {
            errors.push(FieldError::too_long(path, max));
        } else if let Some(min) = limits.min_length.filter(|min| length < *min) {
            errors.push(FieldError::invalid_str(
                path,
                text,
                format!("{path} in body should be at least {min} chars long"),
            ));
        } else if let Some(pattern) = limits.pattern.as_ref().filter(|p| !p.matches(text)) {
            errors.push(FieldError::invalid_str(
                path,
                text,
                format!("{path} in body should match '{}'", pattern.text()),
            ));
        }
        if let Some(format) = limits.format.as_deref()
            && !format::matches(format, text)
        {
            let shown = json!(text);
            errors.push(FieldError::type_invalid(
                path,
                &shown,
                format!("{path} in body must be of type {format}: {shown}"),
            ));
        }
    }

    fn check_number(&self, path: &Path<'_>, number: &Number, errors: &mut Errors) {
        let limits = &self.limits;
        let shown = Value::Number(number.clone());
        let mut complain = |why: String| {
            errors.push(FieldError::invalid(
                path,
                &shown,
                format!("{path} in body should be {why}"),
            ));
        };
        if let Some(factor) = &limits.multiple_of
            && !is_multiple(number, factor)
        {
            complain(format!("a multiple of {factor}"));
        }
        if let Some(max) = &limits.maximum {
            match compare(number, max) {
                Some(Ordering::Greater) if !limits.exclusive_maximum => {
                    complain(format!("less than or equal to {max}"));
                }
                Some(Ordering::Greater | Ordering::Equal) if limits.exclusive_maximum => {
                    complain(format!("less than {max}"));
                }
                _ => {}
            }
        }
        if let Some(min) = &limits.minimum {
            match compare(number, min) {
                Some(Ordering::Less) if !limits.exclusive_minimum => {
                    complain(format!("greater than or equal to {min}"));
                }
                Some(Ordering::Less | Ordering::Equal) if limits.exclusive_minimum => {
                    complain(format!("greater than {min}"));
                }
                _ => {}
            }
        }
        if let Some(format) = limits.format.as_deref()
            && !format::holds(format, number)
        {
            let is_number = self.kind == Kind::Number;
            let kind = if is_number { "number" } else { "integer" };
            errors.push(FieldError::invalid_str(
                &NOWHERE,
                "",
                format!("Checked value must be of type {kind} with format {format} in {path}"),
            ));
        }
    }

    fn check_list(&self, path: &Path<'_>, list: &[Value], errors: &mut Errors) {
        let limits = &self.limits;
        if let Some(min) = limits.min_items.filter(|min| list.len() < *min) {
            errors.push(FieldError::invalid(
                path,
                &list.len().into(),
                format!("{path} in body should have at least {min} items"),
            ));
        }
        if let Some(max) = limits.max_items.filter(|max| list.len() > *max) {
            errors.push(FieldError::too_many(path, list.len(), max));
        }
    }

    fn check_object(&self, path: &Path<'_>, len: usize, errors: &mut Errors) {
        let limits = &self.limits;
        if let Some(min) = limits.min_properties.filter(|min| len < *min) {
            errors.push(FieldError::invalid(
                path,
                &len.into(),
                format!("{path} in body should have at least {min} properties"),
            ));
        }
        if let Some(max) = limits.max_properties.filter(|max| len > *max) {
            errors.push(FieldError::too_many(path, len, max));
        }
    }

    /// Said after what is wrong with the fields that are there.
    fn check_required(&self, path: &Path<'_>, value: &Value, errors: &mut Errors) {
        for name in &self.limits.required {
            if value.get(name).is_none() {
                errors.push(FieldError::required(&path.child(name), ""));
            }
        }
    }

    fn check_junctors(&self, path: &Path<'_>, value: &Value, errors: &mut Errors) {
        let fails = |schema: &Schema| {
            let mut found = Errors::new();
            schema.check(path, value, None, &mut found);
            found
        };
        let complain = |errors: &mut Errors, why: &str| {
            let text = format!("{} {why}", crate::field::quoted(&path.to_string()));
            errors.push(FieldError::invalid_str(&NOWHERE, "", text));
        };
        if !self.any_of.is_empty() && !self.any_of_is_type() {
            let mut best: Option<Errors> = None;
            for schema in &self.any_of {
                let found = fails(schema);
                // The server shows what is wrong with the closest alternative.
                if best.as_ref().is_none_or(|best| found.len() < best.len()) {
                    best = Some(found);
                }
            }
            if let Some(best) = best.filter(|best| !best.is_empty()) {
                complain(errors, "must validate at least one schema (anyOf)");
                errors.extend(best);
            }
        }
        if !self.one_of.is_empty() {
            let results: Vec<Errors> = self.one_of.iter().map(fails).collect();
            let valid = results.iter().filter(|found| found.is_empty()).count();
            if valid != 1 {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    many => format!("Found {many} valid alternatives"),
                };
                complain(
                    errors,
                    &format!("must validate one and only one schema (oneOf). {found}"),
                );
                let best = results.into_iter().min_by_key(Errors::len);
                errors.extend(best.into_iter().flatten());
            }
        }
        let mut wrong = false;
        for schema in &self.all_of {
            let found = fails(schema);
            wrong |= !found.is_empty();
            errors.extend(found);
        }
        if wrong {
            complain(errors, "must validate all the schemas (allOf)");
        }
        if let Some(schema) = &self.not
            && fails(schema).is_empty()
        {
            complain(errors, "must not validate the schema (not)");
        }
    }

    /// The one `anyOf` that says a type, which is checked as such.
    fn any_of_is_type(&self) -> bool {
        self.int_or_string
            && matches!(
                self.any_of.as_slice(),
                [
                    Schema {
                        kind: Kind::Integer,
                        ..
                    },
                    Schema {
                        kind: Kind::String,
                        ..
                    }
                ]
            )
    }

    fn has_wrong_lists(&self, object: &Value) -> bool {
        let mut found = Errors::new();
        self.check_lists(&Path::ROOT, object, &mut found);
        !found.is_empty()
    }

    /// Checks that items of sets and maps are there once.
    fn check_lists(&self, path: &Path<'_>, value: &Value, errors: &mut Errors) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(schema) = self.field(name) {
                        schema.check_lists(&path.child(name), value, errors);
                    }
                }
            }
            Value::Array(list) => {
                if self.list_type != ListType::Atomic {
                    let mut seen = HashSet::new();
                    for (index, item) in list.iter().enumerate() {
                        let identity = self.identity(item);
                        if !seen.insert(identity.to_string()) {
                            errors.push(FieldError::duplicate(&path.index(index), &identity));
                        }
                    }
                }
                if let Some(schema) = &self.items {
                    for (index, item) in list.iter().enumerate() {
                        schema.check_lists(&path.index(index), item, errors);
                    }
                }
            }
            _ => {}
        }
    }

    /// What tells an item of this list from the others.
    pub(super) fn identity(&self, item: &Value) -> Value {
        let ListType::Map(keys) = &self.list_type else {
            return item.clone();
        };
        keys.iter()
            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())))
            .collect::<serde_json::Map<String, Value>>()
            .into()
    }

    /// Checks the metadata of the resources inside an object.
    fn check_embedded(&self, path: &Path<'_>, value: &Value, errors: &mut Errors) {
        match value {
            Value::Object(fields) => {
                if self.embedded {
                    check_resource(path, value, errors);
                }
                for (name, value) in fields {
                    if let Some(schema) = self.field(name) {
                        schema.check_embedded(&path.child(name), value, errors);
                    }
                }
            }
            Value::Array(list) => {
                if let Some(schema) = &self.items {
                    for (index, item) in list.iter().enumerate() {
                        schema.check_embedded(&path.index(index), item, errors);
                    }
                }
            }
            _ => {}
        }
    }

    /// Checks the rules of this schema and of those below. `unchanged` says that the
    /// value is as it was, or is in one that is.
    fn check_rules(
        &self,
        path: &Path<'_>,
        value: &Value,
        old: Option<&Value>,
        unchanged: bool,
        budget: &mut Budget,
        errors: &mut Errors,
    ) {
        if budget.is_over() || !self.has_rules || (value.is_null() && self.nullable) {
            return;
        }
        if let Some(rules) = &self.rules {
            rules.check(path, value, old, unchanged, budget, errors);
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(schema) = self.field(name) {
                        let old = old.and_then(|old| old.get(name));
                        let unchanged = unchanged || old == Some(value);
                        let path = if self.properties.contains_key(name) {
                            path.child(name)
                        } else {
                            path.key(name)
                        };
                        schema.check_rules(&path, value, old, unchanged, budget, errors);
                    }
                }
            }
            Value::Array(list) => {
                let Some(schema) = &self.items else { return };
                let past = Past::of(self, old);
                for (index, item) in list.iter().enumerate() {
                    let old = past.item(self, item);
                    let unchanged = unchanged || old == Some(item);
                    let path = path.index(index);
                    schema.check_rules(&path, item, old, unchanged, budget, errors);
                }
            }
            _ => {}
        }
    }
}

/// What the items of a list were before, by what tells them apart; only items of
/// maps have a past.
struct Past<'a>(HashMap<String, &'a Value>);

impl<'a> Past<'a> {
    fn of(schema: &Schema, old: Option<&'a Value>) -> Self {
        let is_map = matches!(schema.list_type, ListType::Map(_));
        let items = old.filter(|_| is_map).and_then(Value::as_array);
        let items = items.into_iter().flatten();
        // Of several that are alike, the first.
        let items = items
            .rev()
            .map(|item| (schema.identity(item).to_string(), item));
        Past(items.collect())
    }

    fn item(&self, schema: &Schema, item: &Value) -> Option<&'a Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&schema.identity(item).to_string()).copied()
    }
}

/// Checks that an embedded resource is one.
fn check_resource(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    for field in ["apiVersion", "kind"] {
        let text = value.get(field).and_then(Value::as_str);
        if text.is_none_or(str::is_empty) {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    let version = value.get("apiVersion").and_then(Value::as_str);
    if let Some(version) = version.filter(|version| version.matches('/').count() > 1) {
        let why = format!("unexpected GroupVersion string: {version}");
        errors.push(FieldError::invalid_str(
            &path.child("apiVersion"),
            version,
            why,
        ));
    }
    if value.get("metadata").is_none() {
        return;
    }
    let mut found = Errors::new();
    let rules = ObjectMetaRules {
        namespaced: false,
        name: |_| Vec::new(),
    };
    validate_meta(value, &rules, &mut found);
    // Names and namespaces of what is inside are nobody's business.
    found.retain(|error| !matches!(error.field.as_str(), "metadata.name" | "metadata.namespace"));
    let prefix = path.to_string();
    errors.extend(found.into_iter().map(|mut error| {
        error.field = format!("{prefix}.{}", error.field);
        error
    }));
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests;

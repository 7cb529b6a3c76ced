//! Tables: how objects are shown to people, as `meta.k8s.io/v1` Table.
//!
//! Built-in kinds have rows of columns and a function for their cells; custom
//! resources have the printer columns of their definition; everything else shows
//! its name and when it was created.

mod access;
mod admission;
mod column;
mod config;
mod custom;
mod duration;
mod networking;
mod pods;
mod storage;
mod system;
mod workloads;

use std::time::SystemTime;

use serde_json::{Value, json};

use self::column::{Cells, Column, Layout};
use self::custom::CustomColumns;
use crate::kinds::Kind;

/// What the rows of a table carry of their objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

/// The columns of a kind, ready to show objects.
#[derive(Debug)]
pub struct Table(Columns);

#[derive(Debug)]
enum Columns {
    Kind(&'static Layout),
    Custom(CustomColumns),
    Plain,
}

const LAYOUTS: &[&[Layout]] = &[
    config::LAYOUTS,
    pods::LAYOUTS,
    workloads::LAYOUTS,
    networking::LAYOUTS,
    access::LAYOUTS,
    storage::LAYOUTS,
    admission::LAYOUTS,
    system::LAYOUTS,
];

/// What kinds without columns of their own show.
const PLAIN: [Column; 2] = [Column::NAME, Column::of("Created At", "date")];

impl Table {
    /// The table of a built-in kind.
    pub fn of_kind(kind: &Kind) -> Self {
        let layout = LAYOUTS
            .iter()
            .copied()
            .flatten()
            .find(|layout| layout.group == kind.group && layout.kind == kind.kind);
        Table(layout.map_or(Columns::Plain, Columns::Kind))
    }

    /// The table of the scale subresource of a built-in kind.
    pub fn of_scale() -> Self {
        Table(Columns::Kind(&workloads::SCALE))
    }

    /// The table of the scale subresource of a custom resource.
    pub fn of_custom_scale() -> Self {
        Table(Columns::Kind(&workloads::CUSTOM_SCALE))
    }

    /// The table of a custom resource with these `additionalPrinterColumns`.
    pub fn of_columns(columns: &[Value]) -> Self {
        Table(Columns::Custom(CustomColumns::parse(columns)))
    }

    /// The table of `objects` at a time; `metadata` is that of the list.
    pub fn render(
        &self,
        objects: &[Value],
        metadata: Value,
        include: Include,
        now: SystemTime,
    ) -> Value {
        let columns: Vec<Value> = match &self.0 {
            Columns::Kind(layout) => layout.columns.iter().map(Column::definition).collect(),
            Columns::Custom(columns) => columns.definitions(),
            Columns::Plain => PLAIN.iter().map(Column::definition).collect(),
        };
        let rows: Vec<Value> = objects
            .iter()
            .map(|object| self.row(object, include, now))
            .collect();
        let mut table = json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "columnDefinitions": columns,
            "rows": rows,
        });
        table["metadata"] = metadata;
        table
    }

    fn row(&self, object: &Value, include: Include, now: SystemTime) -> Value {
        let shown = Cells { object, now };
        let cells = match &self.0 {
            Columns::Kind(layout) => (layout.cells)(&shown),
            Columns::Custom(columns) => columns.cells(&shown),
            Columns::Plain => vec![
                shown.name(),
                json!(shown.text("/metadata/creationTimestamp")),
            ],
        };
        let carried = match include {
            Include::None => Value::Null,
            Include::Object => object.clone(),
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object.get("metadata"),
            }),
        };
        let mut row = json!({ "cells": cells, "object": carried });
        if let Columns::Kind(layout) = &self.0
            && let Some(condition) = (layout.condition)(object)
        {
            row["conditions"] = json!([condition]);
        }
        row
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "cases read better as values")]
mod tests;

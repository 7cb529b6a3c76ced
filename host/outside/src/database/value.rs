//! Values on their way to the server and back.

use bytes::BytesMut;
use reeve_core::sql::Value;
use std::error::Error;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};

/// A parameter. It is sent as text, which the server takes for every type, so that
/// its type follows from the statement and nothing else.
#[derive(Debug)]
pub(super) struct Parameter<'a>(pub(super) &'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let text = match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            // The names that PostgreSQL has for what is no number.
            Value::Float(value) if value.is_nan() => "NaN".to_owned(),
            Value::Float(value) if value.is_infinite() => {
                let sign = if *value < 0.0 { "-" } else { "" };
                format!("{sign}Infinity")
            }
            Value::Float(value) => value.to_string(),
            Value::Text(value) => {
                if value.contains('\0') {
                    return Err("a text holds a zero character".into());
                }
                value.clone()
            }
            Value::Bytes(value) => {
                let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("\\x{hex}")
            }
        };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }
}

/// A column of a row.
pub(super) struct Column(pub(super) Value);

/// A type whose values cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("values of type {0} cannot be returned; cast the column to text")]
pub(super) struct NoSuchType(String);

impl<'a> FromSql<'a> for Column {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let integer = |bytes: &[u8]| {
            let sign = if bytes.first().is_some_and(|byte| *byte > 127) {
                -1
            } else {
                0
            };
            let shift = |value: i64, byte: &u8| value << 8 | i64::from(*byte);
            bytes.iter().fold(sign, shift)
        };
        Ok(Self(match *ty {
            Type::BOOL => Value::Boolean(raw == [1]),
            Type::INT2 | Type::INT4 | Type::INT8 => Value::Integer(integer(raw)),
            Type::OID | Type::XID | Type::CID => Value::Integer(
                raw.iter()
                    .fold(0, |value, byte| value << 8 | i64::from(*byte)),
            ),
            Type::FLOAT4 => Value::Float(f32::from_sql(ty, raw)?.into()),
            Type::FLOAT8 => Value::Float(f64::from_sql(ty, raw)?),
            Type::BYTEA => Value::Bytes(raw.to_vec()),
            // The first byte is the version of the form.
            Type::JSONB => {
                Value::Text(std::str::from_utf8(raw.get(1..).unwrap_or_default())?.into())
            }
            Type::CHAR
            | Type::TEXT
            | Type::VARCHAR
            | Type::BPCHAR
            | Type::NAME
            | Type::UNKNOWN
            | Type::JSON
            | Type::XML => Value::Text(std::str::from_utf8(raw)?.into()),
            // What a statement without a result returns.
            Type::VOID => Value::Null,
            _ => return Err(NoSuchType(ty.to_string()).into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_text() {
        for (value, expected) in [
            (Value::Boolean(true), "true"),
            (Value::Integer(-5), "-5"),
            (Value::Float(1.5), "1.5"),
            (Value::Float(f64::NEG_INFINITY), "-Infinity"),
            (Value::Float(f64::NAN), "NaN"),
            (Value::Text("it's".into()), "it's"),
            (Value::Bytes(vec![0, 255]), "\\x00ff"),
        ] {
            let mut out = BytesMut::new();
            let null = Parameter(&value).to_sql(&Type::TEXT, &mut out).unwrap();
            assert!(matches!(null, IsNull::No));
            assert_eq!(std::str::from_utf8(&out).unwrap(), expected);
        }
        let mut out = BytesMut::new();
        assert!(matches!(
            Parameter(&Value::Null).to_sql(&Type::TEXT, &mut out),
            Ok(IsNull::Yes)
        ));
        assert!(
            Parameter(&Value::Text("\0".into()))
                .to_sql(&Type::TEXT, &mut out)
                .is_err()
        );
    }

    #[test]
    fn columns_have_the_values_that_were_sent() {
        for (ty, raw, expected) in [
            (Type::BOOL, vec![1], Value::Boolean(true)),
            (Type::INT2, vec![255, 254], Value::Integer(-2)),
            (Type::INT4, vec![0, 0, 1, 0], Value::Integer(256)),
            (Type::INT8, vec![255; 8], Value::Integer(-1)),
            (Type::OID, vec![255; 4], Value::Integer(4_294_967_295)),
            (Type::TEXT, b"a".to_vec(), Value::Text("a".into())),
            (Type::JSONB, b"\x01{}".to_vec(), Value::Text("{}".into())),
            (Type::BYTEA, vec![0], Value::Bytes(vec![0])),
        ] {
            let Column(found) = Column::from_sql(&ty, &raw).unwrap();
            assert_eq!(found, expected, "{ty}");
        }
        let error = Column::from_sql(&Type::NUMERIC, &[]).err().unwrap();
        assert!(error.to_string().contains("cast the column to text"));
    }
}

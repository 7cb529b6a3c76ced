//! Reading the text of a label selector.

use super::{LabelSelector, LabelSelectorError, Operator, Requirement, key_error};
use crate::field::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    Symbol(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::End => "",
            Token::Word(text) | Token::Symbol(text) => text,
        }
    }

    fn ends_requirement(self) -> bool {
        matches!(self, Token::End | Token::Symbol(","))
    }

    fn starts_requirement(self) -> bool {
        matches!(self, Token::Word(_) | Token::Symbol("!"))
    }
}

/// A selector being read.
pub(super) struct Parser<'a> {
    rest: &'a str,
    ahead: Token<'a>,
}

const SYMBOLS: [&str; 9] = ["!=", "==", "!", "=", "(", ")", ",", ">", "<"];

impl<'a> Parser<'a> {
    /// A parser of a text.
    pub(super) fn new(text: &'a str) -> Self {
        let mut parser = Parser {
            // The server's scanner takes a zero byte for the end.
            rest: text.split('\0').next().unwrap_or_default(),
            ahead: Token::End,
        };
        parser.take();
        parser
    }

    /// The next token, which is consumed.
    fn take(&mut self) -> Token<'a> {
        let space = |c| matches!(c, ' ' | '\t' | '\r' | '\n');
        let rest = self.rest.trim_start_matches(space);
        let symbol = SYMBOLS.into_iter().find(|s| rest.starts_with(s));
        let end = match symbol {
            Some(symbol) => symbol.len(),
            None => rest
                .find(|c| space(c) || "=!(),><".contains(c))
                .unwrap_or(rest.len()),
        };
        let (text, rest) = rest.split_at(end);
        let next = match symbol {
            Some(_) => Token::Symbol(text),
            None if text.is_empty() => Token::End,
            None => Token::Word(text),
        };
        self.rest = rest;
        std::mem::replace(&mut self.ahead, next)
    }

    /// The whole selector.
    pub(super) fn selector(mut self) -> Result<LabelSelector, LabelSelectorError> {
        let mut requirements = Vec::new();
        loop {
            if self.ahead == Token::End {
                return Ok(LabelSelector { requirements });
            }
            if !self.ahead.starts_requirement() {
                return Err(unexpected(self.ahead, "!, identifier, or 'end of string'"));
            }
            let requirement = self
                .requirement()
                .map_err(|error| LabelSelectorError::Requirement(Box::new(error)))?;
            requirements.push(requirement);
            match self.take() {
                Token::End => return Ok(LabelSelector { requirements }),
                Token::Symbol(",") if self.ahead.starts_requirement() => {}
                Token::Symbol(",") => {
                    return Err(unexpected(self.ahead, "identifier after ','"));
                }
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, LabelSelectorError> {
        let negated = self.ahead == Token::Symbol("!");
        if negated {
            self.take();
        }
        let key = match self.take() {
            Token::Word(key) => key,
            other => return Err(unexpected(other, "identifier")),
        };
        // The server has no path here and prints what Go prints for that.
        if let Some(error) = key_error(&Path::new("<nil>"), key) {
            return Err(LabelSelectorError::Invalid(error.to_string()));
        }
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if self.ahead.ends_requirement() {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = match self.take() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => {
                return Err(unexpected(other, "in, notin, =, ==, !=, gt, lt"));
            }
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn value(&mut self) -> Result<String, LabelSelectorError> {
        if self.ahead.ends_requirement() {
            return Ok(String::new());
        }
        match self.take() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(unexpected(other, "identifier")),
        }
    }

    /// `(a,b)`, where any value may be left out and is then the empty one.
    fn values(&mut self) -> Result<Vec<String>, LabelSelectorError> {
        match self.take() {
            Token::Symbol("(") => {}
            other => {
                return Err(LabelSelectorError::NoValues {
                    found: other.text().to_owned(),
                });
            }
        }
        if !matches!(self.ahead, Token::Word(_) | Token::Symbol("," | ")")) {
            return Err(unexpected(self.ahead, "',', ')' or identifier"));
        }
        let mut values = Vec::new();
        loop {
            match self.ahead {
                Token::Word(value) => {
                    self.take();
                    values.push(value.to_owned());
                }
                Token::Symbol("," | ")") => values.push(String::new()),
                other => return Err(unexpected(other, "',', or identifier")),
            }
            match self.ahead {
                Token::Symbol(")") => {
                    self.take();
                    return Ok(values);
                }
                Token::Symbol(",") => {
                    self.take();
                }
                other => return Err(unexpected(other, "',' or ')'")),
            }
        }
    }
}

fn unexpected(token: Token<'_>, expected: &'static str) -> LabelSelectorError {
    LabelSelectorError::Unexpected {
        found: token.text().to_owned(),
        expected,
    }
}

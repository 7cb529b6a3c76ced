//! Where in an expression something is, and how it is shown there.

use kube_cel::cel::parser::Parser;

/// The longest expression that is read: that of the real server's library.
const LONGEST: usize = 100_000;
/// So many operators may be nested or in a row, as in the real server's library: what
/// reads expressions takes some of the stack for each.
const DEEPEST: usize = 250;

/// Says why an expression is not even looked at.
pub(super) fn check_size(text: &str) -> Result<(), String> {
    let size = text.chars().count();
    if size > LONGEST {
        return Err(format!(
            "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit {LONGEST}"
        ));
    }
    if depth(text) > DEEPEST {
        return Err(format!(
            "ERROR: <input>:-1:0: max recursion depth exceeded: {DEEPEST}"
        ));
    }
    Ok(())
}

/// How deep the tree of an expression may be at most: the operators of all that is open
/// at one place. Of operators that are joined as a balanced tree, and of what separates,
/// only what is between them counts.
pub(super) fn depth(text: &str) -> usize {
    let mut open = vec![0_usize];
    let (mut deepest, mut sum) = (0, 0_usize);
    let (mut rest, mut last) = (text, ' ');
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '"' | '\'' => behind_text(rest, matches!(last, 'r' | 'R')),
            '/' if after.starts_with('/') => after.split_once('\n').map_or("", |(_, after)| after),
            _ => after,
        };
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let is_in = c == 'i'
            && !is_word(last)
            && rest
                .strip_prefix('n')
                .is_some_and(|rest| !rest.starts_with(is_word));
        let separates = c == ',' || (matches!(c, '&' | '|') && rest.starts_with(c));
        last = c;
        match c {
            _ if separates => {
                if let Some(here) = open.last_mut() {
                    sum -= std::mem::take(here);
                }
                rest = rest.strip_prefix(['&', '|']).unwrap_or(rest);
            }
            ')' | ']' | '}' if open.len() > 1 => sum -= open.pop().unwrap_or_default(),
            '(' | '[' | '{' => {
                count(&mut open, &mut sum);
                open.push(0);
            }
            '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '?' => {
                count(&mut open, &mut sum);
            }
            _ if is_in => count(&mut open, &mut sum),
            _ => {}
        }
        deepest = deepest.max(sum);
    }
    deepest
}

fn count(open: &mut [usize], sum: &mut usize) {
    if let Some(here) = open.last_mut() {
        *here += 1;
        *sum += 1;
    }
}

/// What follows a text in quotes that `rest` begins with. One that is not closed ends
/// with its line, as for the parser.
fn behind_text(rest: &str, is_raw: bool) -> &str {
    let quote = rest.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let is_long = rest.starts_with(&triple);
    let end = if is_long { triple.as_str() } else { quote };
    let mut left = rest.get(end.len()..).unwrap_or_default();
    loop {
        if let Some(behind) = left.strip_prefix(end) {
            return behind;
        }
        let mut chars = left.chars();
        match chars.next() {
            None => return "",
            Some('\n') if !is_long => return chars.as_str(),
            Some('\\') if !is_raw => drop(chars.next()),
            Some(_) => {}
        }
        left = chars.as_str();
    }
}

/// A complaint about the part `id` of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The number of the part.
    pub(super) id: u64,
    /// What is wrong with it.
    pub(super) text: String,
}

/// All complaints, in the order of the text.
pub(super) fn shown(text: &str, faults: &[Fault]) -> String {
    let places = Places::of(text);
    let mut placed: Vec<((usize, usize), &str)> = faults
        .iter()
        .map(|fault| (places.of_part(text, fault.id), fault.text.as_str()))
        .collect();
    placed.sort_by_key(|(place, _)| *place);
    let shown = placed.iter().map(|(place, fault)| at(text, *place, fault));
    shown.collect::<Vec<_>>().join("\n")
}

/// A complaint with the line that it is about. Lines are counted from one, columns
/// from zero.
pub(super) fn at(text: &str, (line, column): (usize, usize), fault: &str) -> String {
    let mut out = format!("ERROR: <input>:{line}:{}: {fault}", column + 1);
    if let Some(line) = text.split('\n').nth(line.saturating_sub(1)) {
        let line = line.replace('\t', " ");
        let wide = |c: char| c.len_utf8() > 1;
        let mut chars = line.chars();
        let dots = chars.by_ref().take(column);
        let dots: String = dots
            .map(|c| if wide(c) { '\u{ff0e}' } else { '.' })
            .collect();
        let mark = if chars.next().is_some_and(wide) {
            '\u{ff3e}'
        } else {
            '^'
        };
        out.push_str(&format!("\n | {line}\n | {dots}{mark}"));
    }
    out
}

/// Where the parts of an expression begin, in bytes.
struct Places(Option<std::sync::Arc<kube_cel::cel::common::ast::SourceInfo>>);

/// What the expression is put into to learn where its parts are: the parser tells that
/// only with an error.
const BEFORE: &str = "[0].all(0,\n";
const BEHIND: &str = "\n)";
/// So many parts come before those of the expression.
const PARTS_BEFORE: u64 = 4;

impl Places {
    fn of(text: &str) -> Self {
        let read = || {
            let parser = Parser::new().enable_optional_syntax(true);
            let refused = parser.parse(&format!("{BEFORE}{text}{BEHIND}"));
            let errors = refused.err().map(|refused| refused.errors);
            errors.and_then(|errors| errors.into_iter().find_map(|e| e.source_info))
        };
        Places(super::on_a_large_stack(read).flatten())
    }

    /// The line and the column of a part.
    fn of_part(&self, text: &str, id: u64) -> (usize, usize) {
        let range = self
            .0
            .as_ref()
            .and_then(|info| info.offset_for(id + PARTS_BEFORE));
        let start = range.and_then(|(start, _)| usize::try_from(start).ok());
        let start = start.and_then(|start| start.checked_sub(BEFORE.len()));
        let before = start
            .and_then(|start| text.get(..start))
            .unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default();
        (line, column.chars().count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_deep_expressions_are_not_looked_at() {
        let refused = |text: &str| check_size(text).is_err();
        assert!(!refused("self.a.b.c == 'x.y.z' && self.d in [1, 2, 3]"));
        assert!(refused(&format!("self{}", ".a".repeat(300))));
        assert!(refused(&format!("1{}", " + 1".repeat(300))));
        assert!(refused(&format!("1{}", " + ','".repeat(300))));
        assert!(refused(&format!("{}1", "-".repeat(300))));
        assert!(refused(&format!("1{}", " in x".repeat(300))));
        assert!(refused(&format!("r'\\'{}", " + '\\''".repeat(300))));
        assert!(refused(&format!("'{}", "\n1 + ".repeat(300))));
        assert!(refused(&"[".repeat(300)));
        assert!(refused(&" ".repeat(LONGEST + 1)));
        // What is many and not deep is fine.
        let many = vec!["self.a == 'b.c'"; 1_000].join(" || ");
        assert!(!refused(&many));
        let many = vec!["1"; 1_000].join(", ");
        assert!(!refused(&format!("self.a in [{many}]")));
        assert!(!refused(&format!("self == '{}'", "..".repeat(300))));
        assert!(!refused(&format!("self == '''{}'''", "'.".repeat(300))));
    }

    #[test]
    fn complaints_show_where() {
        let shown = at("self.é + 1", (1, 7), "no");
        assert_eq!(shown, "ERROR: <input>:1:8: no\n | self.é + 1\n | .....．.^");
        let shown = at("true &&\n\tfalse", (2, 1), "no");
        assert_eq!(shown, "ERROR: <input>:2:2: no\n |  false\n | .^");
    }
}

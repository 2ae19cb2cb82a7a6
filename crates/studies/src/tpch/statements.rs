//! The statements of the study: TPC-H's queries, and a query that reads a part of a table by different access paths.

use regex_lite::Regex;

/// The queries with the specification's validation parameters, as PostgreSQL takes them.
macro_rules! queries {
    ($($number:literal),*) => {
        [$(include_str!(concat!("../../../../workloads/tpch/queries/", $number, ".sql"))),*]
    };
}

const QUERIES: [&str; 22] = queries!(
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20", "21", "22"
);

/// How SQLite says it: patterns and replacements, applied one after another.
const SQLITE_DIALECT: [(&str, &str); 4] = [
    (r"date '([^']*)' ([+-]) interval '(\d+)' (\w+)", "date('$1', '$2$3 $4')"),
    (r"date '([^']*)'", "'$1'"),
    (r"extract\(year from (\w+)\)", "cast(strftime('%Y', $1) as integer)"),
    (r"substring\((\w+) from (\d+) for (\d+)\)", "substr($1, $2, $3)"),
];

/// A statement, in the dialect of the database that executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// The name of its file, without the ending.
    pub(super) name: String,
    /// What people call it.
    pub(super) title: String,
    /// Its text.
    pub(super) sql: String,
    /// Settings of a server for this statement: `name=value`.
    pub(super) settings: &'static [&'static str],
}

impl Statement {
    /// The same, of which the plan is asked instead of the rows, by these words.
    pub(super) fn explained(&self, explain: &str) -> Statement {
        Statement { sql: format!("{explain} {}", self.sql), ..self.clone() }
    }
}

/// The numbers of all queries.
pub fn numbers() -> impl Iterator<Item = u32> {
    1..=QUERIES.len() as u32
}

/// The name of a query in tables.
pub(super) fn label(number: u32) -> String {
    format!("Q{number}")
}

/// What the specification calls a query.
pub(super) fn title(number: u32) -> &'static str {
    let text = QUERIES[number as usize - 1];
    let title = text.split_once(": ").and_then(|(_, rest)| rest.split_once('.'));
    title.map_or("", |(title, _)| title)
}

/// A query for a database of this scale factor.
pub(super) fn query(number: u32, scale: f64, is_sqlite: bool) -> Statement {
    let text = QUERIES[number as usize - 1];
    // The comment is not executed.
    let text = text.split_once('\n').map_or(text, |(_, sql)| sql);
    let mut sql = text.replace("{fraction}", &format!("{:.10}", 0.0001 / scale));
    if is_sqlite {
        for (pattern, replacement) in SQLITE_DIALECT {
            let pattern = Regex::new(pattern).expect("a valid pattern");
            sql = pattern.replace_all(&sql, replacement).into_owned();
        }
    }
    Statement { name: format!("q{number:02}"), title: label(number), sql, settings: &[] }
}

/// A way to the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessPath {
    /// Its name.
    pub(super) name: &'static str,
    /// What follows the table's name (SQLite).
    after_table: &'static str,
    /// The server's settings that leave nothing else (PostgreSQL).
    settings: &'static [&'static str],
    /// What a plan that has it says, and no plan with a later path does.
    pub(super) in_plan: &'static str,
}

/// SQLite's access paths.
pub(super) const SQLITE_PATHS: &[AccessPath] = &[
    AccessPath {
        name: "sequential scan",
        after_table: "not indexed",
        settings: &[],
        in_plan: "SCAN shipments",
    },
    AccessPath {
        name: "index scan",
        after_table: "indexed by shipments_shipdate",
        settings: &[],
        in_plan: "SEARCH shipments",
    },
];

/// PostgreSQL's access paths.
pub(super) const POSTGRESQL_PATHS: &[AccessPath] = &[
    AccessPath {
        name: "sequential scan",
        after_table: "",
        settings: &["enable_indexscan=off", "enable_bitmapscan=off"],
        in_plan: "Seq Scan",
    },
    AccessPath {
        name: "index scan",
        after_table: "",
        settings: &["enable_seqscan=off", "enable_bitmapscan=off"],
        in_plan: "Index Scan using",
    },
    AccessPath {
        name: "bitmap scan",
        after_table: "",
        settings: &["enable_seqscan=off", "enable_indexscan=off"],
        in_plan: "Bitmap Heap Scan",
    },
];

/// How many days of shipments are read. A day is some 0.04 % of them.
pub(super) const DAYS: [u32; 10] = [1, 3, 6, 12, 24, 48, 120, 240, 600, 1200];

/// Reads the shipments of some days, by an access path, or by that which the optimizer chooses.
pub(super) fn shipments(days: u32, path: Option<&AccessPath>, is_sqlite: bool) -> Statement {
    let end = if is_sqlite {
        format!("date('1993-01-01', '+{days} day')")
    } else {
        format!("date '1993-01-01' + interval '{days}' day")
    };
    let after = path.map_or("", |path| path.after_table);
    let by = path.map_or("any access path", |path| path.name);
    Statement {
        name: format!("s{days:04}-{}", &by[..1]),
        title: format!("the shipments of {days} days by {by}"),
        sql: format!(
            "select count(*), sum(l_extendedprice * l_discount) from shipments {after}\n\
             where l_shipdate >= '1993-01-01' and l_shipdate < {end}\n"
        ),
        settings: path.map_or(&[], |path| path.settings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_differ_in_dates_and_functions_only() {
        let of = |number| query(number, 0.01, true).sql;
        assert!(of(1).contains("l_shipdate <= date('1998-12-01', '-90 day')\n"), "{}", of(1));
        assert!(of(3).contains("o_orderdate < '1995-03-15'\n"));
        assert!(of(4).contains("o_orderdate < date('1993-07-01', '+3 month')\n"));
        assert!(of(7).contains("cast(strftime('%Y', l_shipdate) as integer) as l_year"));
        assert!(of(22).contains("substr(c_phone, 1, 2) as cntrycode"));
        for number in numbers() {
            let [sqlite, postgresql] = [true, false].map(|is_sqlite| query(number, 0.01, is_sqlite).sql);
            assert!(
                !sqlite.contains("interval") && !sqlite.contains("extract(") && !sqlite.contains("date '")
            );
            assert_eq!(sqlite.lines().count(), postgresql.lines().count());
            assert!(!title(number).is_empty());
        }
        assert_eq!(title(19), "Discounted Revenue");
    }

    #[test]
    fn the_fraction_depends_on_the_scale() {
        assert!(query(11, 1.0, false).sql.contains("* 0.0001000000\n"));
        assert!(query(11, 0.01, false).sql.contains("* 0.0100000000\n"));
    }

    #[test]
    fn statements_have_files_of_their_own() {
        let paths = SQLITE_PATHS.iter().chain(POSTGRESQL_PATHS).map(Some).chain([None]);
        let mut names: Vec<_> = paths.map(|path| shipments(3, path, false).name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names, ["s0003-a", "s0003-b", "s0003-i", "s0003-s"]);
    }
}

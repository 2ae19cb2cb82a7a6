//! Tables of the database.

use table::{Kind, Table, Value};

use crate::{ApplicationView, ImageView};

fn count(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn text(text: impl ToString) -> Value {
    Value::Text(text.to_string())
}

fn maybe(value: Option<f64>) -> Value {
    value.map_or(Value::Missing, Value::Real)
}

/// A table with a row for each application.
pub fn applications(views: &[ApplicationView]) -> Table {
    let columns = [
        ("application", Kind::Text),
        ("executes", Kind::Text),
        ("images", Kind::Count),
        ("instrumented", Kind::Count),
        ("optimized", Kind::Count),
        ("profiled instructions", Kind::Count),
        ("removed (%)", Kind::Percent(1)),
        ("program", Kind::Text),
    ];
    let mut table = Table::new("applications", "Registered applications", &columns);
    for view in views {
        let number_of =
            |is: fn(&ImageView) -> bool| count(view.images.iter().filter(|image| is(image)).count() as u64);
        table.row(vec![
            text(&view.name),
            text(view.phase),
            number_of(|_| true),
            number_of(|image| image.instrumented),
            number_of(|image| image.optimized),
            count(view.executed()),
            maybe(view.removed()),
            text(view.images.first().map(|image| image.path.display().to_string()).unwrap_or_default()),
        ]);
    }
    table
}

/// A table with a row for each image of an application.
pub fn images(view: &ApplicationView) -> Table {
    let columns = [
        ("image", Kind::Text),
        ("role", Kind::Text),
        ("bytes", Kind::Count),
        ("instrumented", Kind::Text),
        ("optimized", Kind::Text),
        ("loads", Kind::Count),
        ("profiled instructions", Kind::Count),
        ("removed (%)", Kind::Percent(1)),
        ("code", Kind::Count),
        ("optimized code", Kind::Count),
        ("note", Kind::Text),
    ];
    let title = format!("Images of {}, which executes the {} ones", view.name, view.phase);
    let mut table = Table::new("images", &title, &columns);
    let yes = |is: bool| text(if is { "yes" } else { "no" });
    let size = |code: Option<u64>| code.map_or(Value::Missing, count);
    for image in &view.images {
        table.row(vec![
            text(image.path.display()),
            text(&image.role),
            count(image.size),
            yes(image.instrumented),
            yes(image.optimized),
            count(image.loads),
            count(image.executed),
            maybe(image.removed),
            size(image.code),
            size(image.optimized_code),
            text(&image.note),
        ]);
    }
    table.notes.push(
        "Loads are those of the instrumented image. Code is in instructions. Removed are those of the profiled runs that the optimized image does without, but for branches that \
         code layout removes or adds."
            .into(),
    );
    table
}

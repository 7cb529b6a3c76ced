//! `reeve explain`.

mod text;

use crate::kinds;
use crate::looking::{LookArgs, Output, in_json, print_json, reference};
use crate::output;
use crate::style::Painter;
use anyhow::bail;
use clap::Args;
use reeve_agent::planner::{Call, Explanation, OwnedField, Question, Writer};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Say who put each field of an object there, and why
///
/// For each field: the plugin with version, unit and field manager that set it, or
/// who else did. And for each of these plugins, what the call had read that returned
/// the object. For that the plugin is called here, on what the cluster holds now;
/// nothing is changed. Values in Secrets are not shown.
///
/// It reads with your own rights, as `reeve plan` does, and needs get on the object.
#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 it is explained; 1 there is no such object, or it cannot be \
    explained.\n\n\
    Examples:\n  \
    reeve explain resourcequota quotas -n alice\n  \
    reeve explain Deployment.v1.apps web --in team -o json"
)]
pub(crate) struct ExplainArgs {
    /// Kind of the object, as kubectl takes it: Deployment, deploy, deployments.apps
    kind: String,
    /// Name of the object
    name: String,
    /// Namespace of the object
    #[arg(long = "in", short = 'n', value_name = "NAMESPACE")]
    object_namespace: Option<String>,
    /// Show the marks of ownership on the object too
    #[arg(long, short)]
    verbose: bool,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) async fn run(args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let explanation = match explain(&args).await {
        Ok(explanation) => explanation,
        Err(error) => {
            output::complain(reeve_core::chain(error.as_ref()));
            return Ok(ExitCode::FAILURE);
        }
    };
    match args.output {
        Output::Json => print_json(&in_words_of_programs(&explanation))?,
        Output::Text => {
            let painter = Painter::for_stdout();
            output::print(text::of(&explanation, args.verbose, painter))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn explain(args: &ExplainArgs) -> anyhow::Result<Explanation> {
    let client = args.look.connection.client().await?;
    let served = kinds::find(&client, &args.kind).await?;
    let kind = &served.kind;
    let namespace = match (&args.object_namespace, served.namespaced) {
        (None, true) => bail!(
            "{} {} is in a namespace; name it with -n",
            kind.kind,
            args.name
        ),
        (Some(_), false) => bail!("{} is in no namespace; leave out -n", kind.kind),
        (namespace, _) => namespace.as_deref(),
    };
    let planner = args.look.planner().await?;
    Ok(planner.explain(kind, namespace, &args.name).await?)
}

fn in_words_of_programs(explanation: &Explanation) -> Value {
    let fields: Vec<Value> = explanation.fields.iter().map(field).collect();
    let writers: Vec<Value> = explanation
        .writers
        .iter()
        .map(|(manager, writer)| writer_json(manager, writer))
        .collect();
    json!({
        "object": reference(&explanation.object),
        "fields": fields,
        "plugins": writers,
    })
}

fn field(field: &OwnedField) -> Value {
    let owners: Vec<Value> = field
        .owners
        .iter()
        .map(|owner| {
            json!({
                "manager": owner.manager,
                "operation": owner.operation,
                "subresource": owner.subresource,
                "since": owner.since,
            })
        })
        .collect();
    let mut value = in_json(&field.value);
    value["path"] = json!(field.path);
    value["owners"] = json!(owners);
    value
}

fn writer_json(manager: &str, writer: &Writer) -> Value {
    let problems: Vec<Value> = writer
        .problems
        .iter()
        .map(|problem| json!({"reason": problem.reason, "message": problem.message}))
        .collect();
    json!({
        "manager": manager,
        "plugin": writer.plugin,
        "version": writer.version.as_ref().map(|(version, _)| version),
        "digest": writer.version.as_ref().map(|(_, digest)| digest),
        "primary": writer.primary.as_ref().map(reference),
        "problems": problems,
        "call": writer.call.as_ref().map(call),
    })
}

fn call(call: &Call) -> Value {
    let reads: Vec<Value> = call
        .reads
        .iter()
        .map(|read| {
            let mut value = match &read.question {
                Question::Object { object, fields } => json!({
                    "object": reference(object), "fields": fields,
                }),
                Question::Objects {
                    kind,
                    namespace,
                    selector,
                    fields,
                } => json!({
                    "list": {
                        "apiVersion": kind.api_version(), "kind": kind.kind,
                        "namespace": namespace, "selector": selector,
                    },
                    "fields": fields,
                }),
                Question::Source { name } => json!({"source": name}),
                Question::Time(time) => json!({"time": time.to_string()}),
            };
            match &read.answer {
                Ok(found) => value["found"] = json!(found),
                Err(error) => value["error"] = json!(error),
            }
            value
        })
        .collect();
    json!({
        "primary": {"object": reference(&call.primary), "fields": call.fields},
        "config": call.config,
        "reads": reads,
    })
}

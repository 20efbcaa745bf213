/** The types of tools and prompts: their options, their functions, and what these get and return. */
import type { Block, PromptResult, Said, ToolResult } from './blocks.js';
import type { Context } from './context.js';
import type { Completer, Jsonable } from './handler-types.js';
import type { Icon } from './options.js';
import type { InputRequired, JsonObject, MethodResult } from './results.js';
import type { StandardSchema } from './schema.js';
import type { WireToolResult } from './tool-shapes.js';

/** A JSON schema, and how values are checked against it. */
export interface CheckedSchema<Output = unknown> {
  /** The JSON schema. It is published as it is. */
  readonly schema: JsonObject;
  /**
   * Checks a value: a schema of a library, or a function that returns the checked value or throws an
   * `InvalidParameterError`. Default: values are not checked.
   */
  readonly validate?: StandardSchema<unknown, Output> | ((given: unknown) => Output | PromiseLike<Output>);
}

/** A schema of zod, arktype or another library that gives JSON schemas, or a JSON schema with a check. */
// biome-ignore lint/suspicious/noExplicitAny: a schema of any type
export type ToolSchema = StandardSchema<any, any> | CheckedSchema<any>;

/** The arguments of a tool that has the input schema `I`. */
export type ToolArguments<I> =
  I extends StandardSchema<unknown, infer Output>
    ? Output
    : I extends { readonly validate: StandardSchema<unknown, infer Output> }
      ? Output
      : I extends { readonly validate: (given: never) => infer Output }
        ? Awaited<Output>
        : JsonObject;

/** The values that an output schema accepts. */
type Accepted<O> = O extends { readonly '~standard': { readonly types?: { readonly input: infer Input } | undefined } }
  ? Input
  : O extends { readonly validate: StandardSchema<infer Input, unknown> }
    ? Input
    : Jsonable | string | number | boolean | null;

/** A choice of content, a result in the protocol's own members, or questions to the client. */
type Special = ToolResult | WireToolResult | MethodResult | InputRequired;

/** The result of a tool without an output schema. */
export type Toolable =
  | string
  | number
  | boolean
  | null
  | undefined
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement
  | void
  | Block
  | readonly (Block | string)[]
  | Special
  | Jsonable;

/** The result of a tool with the output schema `O`. */
export type ToolAnswer<O> = [O] extends [undefined] ? Toolable : Accepted<O> | Special;

/** A tool: called with its arguments, once they are checked, and a `Context`. */
export type ToolFunction<I, O = undefined, S = unknown> = (
  args: ToolArguments<I>,
  ctx: Context<S>,
) => ToolAnswer<O> | PromiseLike<ToolAnswer<O>>;

/** Hints about a tool. A client must not rely on them unless it trusts the server. */
export interface ToolAnnotations {
  /** A label for people. Clients that know `title` of the tool prefer that. Default: none. */
  readonly title?: string;
  /** Whether it changes nothing. Default: not stated; clients assume `false`. */
  readonly readOnlyHint?: boolean;
  /** Whether it may delete or overwrite something. Default: not stated; clients assume `true`. */
  readonly destructiveHint?: boolean;
  /** Whether a second call with the same arguments changes nothing further. Default: not stated; clients assume `false`. */
  readonly idempotentHint?: boolean;
  /** Whether it reaches things outside the server, such as the web. Default: not stated; clients assume `true`. */
  readonly openWorldHint?: boolean;
}

/** The options that tools and prompts share. */
export interface NamedOptions {
  /** A label for people. Default: none. */
  readonly title?: string;
  /** A description: of a tool for the model, of a prompt for people. Default: none. */
  readonly description?: string;
  /** Icons for user interfaces. Default: none. */
  readonly icons?: readonly Icon[];
  /** Members of `_meta`. Default: none. */
  readonly meta?: JsonObject;
  /** The scopes that a token must have, all of them. Default: none. */
  readonly scopes?: readonly string[];
  /** Whether it replaces one with the same name. Default `false`: that is an error. */
  readonly replace?: boolean;
}

/** The options of `ResourceServer.tool`. */
export interface ToolOptions<
  I extends ToolSchema | undefined = ToolSchema | undefined,
  O extends ToolSchema | undefined = ToolSchema | undefined,
> extends NamedOptions {
  /** The schema of the arguments: of an object. Default: any arguments. */
  readonly input?: I;
  /** The schema of the result, which becomes structured. Default: none. */
  readonly output?: O;
  /** Hints for clients. Default: none. */
  readonly annotations?: ToolAnnotations;
  /** The URI of a registered page (`ResourceServer.ui`) that shows its results in hosts with MCP Apps. Default: none. */
  readonly ui?: string;
  /** Who may call a tool with a page: the model, the page (`app`), or both. Default: both. */
  readonly uiVisibility?: readonly ('model' | 'app')[];
}

/** One argument of a prompt. Its value is a text. */
export interface PromptArgument {
  /** A label for people. Default: none. */
  readonly title?: string;
  /** A description for people. Default: none. */
  readonly description?: string;
  /** Whether it must be given. Default `false`. */
  readonly required?: boolean;
  /** Values to suggest. Other values are accepted too. Default: none. */
  readonly values?: readonly string[];
}

/** An argument of a prompt with its name. */
export interface NamedArgument extends PromptArgument {
  readonly name: string;
}

/** The arguments of a prompt, by name or as a list, or an object schema for them, from a library that gives JSON schemas. */
export type PromptArguments =
  | Readonly<Record<string, PromptArgument>>
  | readonly NamedArgument[]
  // biome-ignore lint/suspicious/noExplicitAny: a schema of any type
  | StandardSchema<any, any>;

/** The names of the arguments that must be given. */
type RequiredNames<A> = { [N in keyof A]: A[N] extends { readonly required: true } ? N : never }[keyof A];

/** The values of the arguments `A` of a prompt. */
export type PromptValues<A> =
  A extends StandardSchema<unknown, infer Output>
    ? Output
    : A extends readonly unknown[]
      ? Readonly<Record<string, string | undefined>>
      : string extends keyof A
        ? Readonly<Record<string, string | undefined>>
        : { readonly [N in RequiredNames<A>]: string } & {
            readonly [N in Exclude<keyof A, RequiredNames<A>>]?: string;
          };

/** The result of a prompt: a text or block of the user, or messages. */
export type Promptable = Said | readonly Said[] | PromptResult | MethodResult | InputRequired;

/** A prompt: called with the values of its arguments, and a `Context`. */
export type PromptFunction<A, S = unknown> = (
  args: PromptValues<A>,
  ctx: Context<S>,
) => Promptable | PromiseLike<Promptable>;

/** The options of `ResourceServer.prompt`. */
export interface PromptOptions<A extends PromptArguments = PromptArguments, S = unknown> extends NamedOptions {
  /** The arguments, in the order in which clients show them. Default: none. */
  readonly arguments?: A;
  /** Functions that complete arguments, by their names. Default: none. */
  readonly complete?: { readonly [N in keyof PromptValues<A> & string]?: Completer<S> };
}

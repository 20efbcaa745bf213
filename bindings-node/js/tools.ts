/** Registrations of tools and prompts. The core checks names and schemas; here is what is JavaScript's own. */

import { fail } from './answers.js';
import { binding, type Edit, type NativeFunction, type PlainValue } from './binding.js';
import { ToolResult } from './blocks.js';
import {
  CALL,
  checkFunction,
  checkOptions,
  checkText,
  FLAG,
  isObject,
  LIST,
  OBJECT,
  type Shape,
  said,
  shown,
  TEXT,
  TEXTS,
} from './check.js';
import type { Peers } from './driver.js';
import { RegistrationError, translated } from './errors.js';
import { type AnyFunction, completer, named, nameOf } from './functions.js';
import { jsonText } from './json.js';
import { InputRequired, type JsonObject, MethodResult } from './results.js';
import {
  argumentFacts,
  isSchema,
  issueOf,
  published,
  type StandardResult,
  type StandardSchema,
  validateAll,
} from './schema.js';
import { answerPrompt, answerTool, failTool, Structured } from './tool-answers.js';
import { shapedTool } from './tool-shapes.js';
import type {
  NamedArgument,
  NamedOptions,
  PromptArgument,
  PromptOptions,
  ToolAnnotations,
  ToolOptions,
} from './tool-types.js';

const NAMED: Shape<NamedOptions> = {
  title: TEXT,
  description: TEXT,
  icons: said(LIST, 'an array of icons such as [{ src: "https://example.com/icon.png" }]'),
  meta: OBJECT,
  scopes: said(TEXTS, 'an array of strings such as ["notes:write"]'),
  replace: FLAG,
};

const SCHEMA = {
  is: (value: unknown) => isSchema(value) || isObject(value),
  expected: 'a schema such as z.object({ … }), or { schema, validate }',
};

const CALLERS = said(TEXTS, 'an array such as ["model", "app"]');
const TOOL: Shape<ToolOptions> = {
  ...NAMED,
  input: SCHEMA,
  output: SCHEMA,
  annotations: OBJECT,
  ui: TEXT,
  uiVisibility: CALLERS,
};

const ANNOTATIONS: Shape<ToolAnnotations> = {
  title: TEXT,
  readOnlyHint: FLAG,
  destructiveHint: FLAG,
  idempotentHint: FLAG,
  openWorldHint: FLAG,
};

const PROMPT: Shape<PromptOptions> = {
  ...NAMED,
  arguments: {
    is: (value) => isSchema(value) || isObject(value) || Array.isArray(value),
    expected: 'an object of arguments by name such as { city: { required: true } }, or a schema',
  },
  complete: {
    is: (value) => isObject(value) && Object.values(value).every((call) => call === undefined || CALL.is(call)),
    expected: 'an object of functions by argument such as { city: (typed) => […] }',
  },
};

type ArgumentOptions = Readonly<Record<string, PromptArgument>> | readonly NamedArgument[];

const ARGUMENT: Shape<PromptArgument> = {
  title: TEXT,
  description: TEXT,
  required: FLAG,
  values: said(TEXTS, 'an array of strings such as ["short", "long"]'),
};

const FROM_THE_SDK = { inputSchema: 'did you mean "input"?', outputSchema: 'did you mean "output"?' };
const OF_TOOLS = { ...FROM_THE_SDK, parameters: 'did you mean "input"?', _meta: 'did you mean "meta"?' };
const OF_PROMPTS = {
  argsSchema: 'did you mean "arguments"?',
  input: 'did you mean "arguments"?',
  _meta: 'did you mean "meta"?',
};

/** The edits that register a tool. */
export function toolEdits(peers: Peers, name: string, options: ToolOptions | AnyFunction, call?: AnyFunction): Edit[] {
  const [given, own] = parted('tool', name, options, call);
  const what = `the tool ${shown(name)}`;
  within(what, () => {
    checkOptions('a tool', given, TOOL, OF_TOOLS);
    if (given.annotations !== undefined) checkOptions('annotations', given.annotations, ANNOTATIONS);
  });
  const { input, output, annotations, ui, uiVisibility, replace, ...details }: ToolOptions = given;
  const parts = {
    check: input === undefined ? (all: JsonObject) => all : checker(input),
    result: output === undefined ? (value: unknown) => value : resultChecker(output),
    answer: answerTool,
    refuse: failTool,
  };
  const fields = {
    ...described(name, details),
    ...(input && { inputSchema: schemaText(`${what}: input`, input, 'input') }),
    ...(output && { outputSchema: schemaText(`${what}: output`, output, 'output') }),
    ...(annotations && { annotations: { ...annotations } }),
    ...(ui !== undefined && { ui }),
    ...(uiVisibility && { uiVisibility: [...uiVisibility] }),
  };
  const native = named(peers, nameOf(own) ?? name, own, parts);
  const added = translated(() => binding.Edit.addTool(fields as PlainValue, native));
  return replace === true ? [binding.Edit.removeTool(name), added] : [added];
}

/** The edits that register a prompt. */
export function promptEdits(
  peers: Peers,
  name: string,
  options: PromptOptions | AnyFunction,
  call?: AnyFunction,
): Edit[] {
  const [given, own] = parted('prompt', name, options, call);
  const what = `the prompt ${shown(name)}`;
  within(what, () => checkOptions('a prompt', given, PROMPT, OF_PROMPTS));
  const { arguments: known = {}, complete = {}, replace, ...details }: PromptOptions = given;
  const listed = isSchema(known)
    ? argumentFacts(`${what}: arguments`, known)
    : argumentsOf(what, known as ArgumentOptions);
  const label = nameOf(own) ?? name;
  const completers: [string, NativeFunction][] = [];
  for (const [argument, completing] of Object.entries<AnyFunction | undefined>(complete)) {
    if (completing === undefined) continue;
    if (!listed.some((one) => one.name === argument)) {
      throw new RegistrationError(`complete: ${shown(argument)} is no argument of ${what}`);
    }
    completers.push([argument, completer(peers, nameOf(completing) ?? `${label} (${argument})`, completing)]);
  }
  const check = isSchema(known) ? checker(known) : (all: JsonObject) => all;
  const native = named(peers, label, own, { check, result: (value) => value, answer: answerPrompt, refuse: fail });
  const fields = { ...described(name, details), arguments: listed };
  const added = translated(() => binding.Edit.addPrompt(fields as unknown as PlainValue, native, completers));
  return replace === true ? [binding.Edit.removePrompt(name), added] : [added];
}

/** The options and the function of a registration. */
function parted<O extends object>(
  kind: string,
  name: unknown,
  options: O | AnyFunction,
  call: unknown,
): [O, AnyFunction] {
  checkText(`the name of the ${kind}`, name, 'search');
  if (typeof options === 'function' && call !== undefined) {
    throw new TypeError(
      `the ${kind} ${shown(name)}: the options come before the function: ${kind}(name, options, call)`,
    );
  }
  const own = typeof options === 'function' ? options : call;
  if (typeof own !== 'function') {
    throw new TypeError(`the ${kind} ${shown(name)} needs a function that answers it, not ${shown(own)}`);
  }
  return [(typeof options === 'function' ? {} : options) as O, own as AnyFunction];
}

/** Runs checks, whose errors name what is registered. */
function within(what: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw error instanceof TypeError ? new TypeError(`${what}: ${error.message}`) : error;
  }
}

function described(name: string, { meta, ...details }: NamedOptions): Record<string, unknown> {
  return { name, ...details, ...(meta && { meta: jsonText(meta, undefined, 'meta') }) };
}

function argumentsOf(what: string, known: ArgumentOptions): NamedArgument[] {
  const listed = Array.isArray(known)
    ? known
    : Object.entries(known).map(([name, argument]) => ({ ...argument, name }));
  for (const argument of listed) {
    within(what, () => checkOptions(`arguments.${argument?.name}`, argument, { ...ARGUMENT, name: TEXT }));
  }
  return listed.map((argument) => ({ ...argument }));
}

/** The JSON schema as text. */
function schemaText(what: string, schema: unknown, side: 'input' | 'output'): string {
  if (isSchema(schema)) return jsonText(published(what, schema, side), undefined, what);
  const given = schema as { readonly schema?: unknown; readonly validate?: unknown };
  if (!isObject(given.schema)) throw new TypeError(`${what} ${misread(schema as object, given.schema)}`);
  const unknown = Object.keys(given).find((member) => member !== 'schema' && member !== 'validate');
  if (unknown !== undefined) throw new TypeError(`${what} has the member "${unknown}", expected { schema, validate }`);
  if (given.validate !== undefined && !isSchema(given.validate)) checkFunction(`${what}.validate`, given.validate);
  return jsonText(given.schema, undefined, what);
}

/** Why an object is no schema, with the form that was probably meant. */
function misread(given: object, schema: unknown): string {
  if (schema !== undefined) return `has the schema ${shown(schema)}, expected a JSON schema as an object`;
  if (Object.values(given).some(isSchema)) return 'is an object of schemas, expected one schema: z.object({ … })';
  return 'is an object without a schema; for a JSON schema, write { schema: { … } }';
}

/** Checks arguments. */
function checker(schema: unknown): (given: JsonObject) => unknown {
  const check = isSchema(schema) ? schema : (schema as { readonly validate?: unknown }).validate;
  if (check === undefined) return (given) => given;
  return isSchema(check) ? (given) => validateAll(check, given) : (check as (given: JsonObject) => unknown);
}

/** Checks results that are no special ones. */
function resultChecker(schema: unknown): (value: unknown) => unknown {
  const check = isSchema(schema) ? schema : (schema as { readonly validate?: unknown }).validate;
  return (value) => {
    if (value instanceof ToolResult || value instanceof MethodResult || value instanceof InputRequired) return value;
    const special = shapedTool(value);
    if (special !== undefined) return special;
    if (check === undefined) return new Structured(value);
    const checked = isSchema(check) ? accepted(check, value) : (check as (value: unknown) => unknown)(value);
    return checked instanceof Promise ? checked.then((late) => new Structured(late)) : new Structured(checked);
  };
}

function accepted(schema: StandardSchema, value: unknown): unknown {
  const result = schema['~standard'].validate(value);
  const found = (result: StandardResult<unknown>) => {
    const issue = issueOf(result);
    if (issue !== undefined) throw new TypeError(`the result does not fit the output schema: ${issue}`);
    return (result as { readonly value: unknown }).value;
  };
  return result instanceof Promise ? result.then(found) : found(result);
}

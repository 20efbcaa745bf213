// What the type checker makes of a template's text. Nothing here runs: it is compiled.
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import type { Listed } from '../../../bindings-node/js/handler-types.js';
import type { Expandable, TemplateValue, VariableName, Variables } from '../../../bindings-node/js/template-types.js';
import { type Equal, holds } from './equal.js';

// Every operator: the first of `{x,y}` and `{+x,y}` is always there, everything else may be left out.
holds<Equal<Variables<'a://{x}'>, { x: string }>>();
holds<Equal<Variables<'a://{x,y}'>, { x: string; y?: string }>>();
holds<Equal<Variables<'a://{+path}'>, { path: string }>>();
holds<Equal<Variables<'a://{+a,b}/{c}'>, { a: string; c: string; b?: string }>>();
holds<Equal<Variables<'a://h{#part}'>, { part?: string }>>();
holds<Equal<Variables<'a://h/{name}{.ext}'>, { name: string; ext?: string }>>();
holds<Equal<Variables<'a://h{/a,b}'>, { a?: string; b?: string }>>();
holds<Equal<Variables<'a://h{;v,w}'>, { v?: string; w?: string }>>();
holds<Equal<Variables<'a://h{?q,page}'>, { q?: string; page?: string }>>();
holds<Equal<Variables<'a://h?fixed=1{&x}'>, { x?: string }>>();
holds<Equal<Variables<'a://h?q={q}&r={+r}'>, { q: string; r: string }>>();

// Modifiers.
holds<Equal<Variables<'a://{x}/{y*}{?z}'>, { x: string; y: string[]; z?: string }>>();
holds<Equal<Variables<'a://h{/path*}{?tags*,n}'>, { path?: string[]; tags?: string[]; n?: string }>>();
holds<Equal<Variables<'a://{id:3}/{name:12}'>, { id: string; name: string }>>();

// A variable that stands twice is there if it is in one of the places; names may have dots and triplets.
holds<Equal<Variables<'a://{id:2}/{id}{?id}'>, { id: string }>>();
holds<Equal<Variables<'a://h{/id}{?id}'>, { id?: string }>>();
holds<Equal<Variables<'a://{geo.lat},{geo.lon}/{%41}'>, { 'geo.lat': string; 'geo.lon': string; '%41': string }>>();

holds<Equal<Variables<'a://fixed'>, {}>>();

// What is not a literal has variables of any name.
holds<Equal<Variables<string>, Record<string, TemplateValue | undefined>>>();
holds<Equal<VariableName<string>, string>>();
holds<Equal<VariableName<'a://{x}{?y*,z:3}'>, 'x' | 'y' | 'z'>>();

// `vars` says what is a list or a map.
type Kinds = { ids: { kind: 'list' }; filter: { kind: 'map' }; path: { policy: 'path' } };
holds<
  Equal<
    Variables<'a://{ids}/{path}{?filter*}', Kinds>,
    { ids: string[]; path: string; filter?: Record<string, string> }
  >
>();

// `Param`s: a type or values instead of the text, in the shape of the variable.
type Params = {
  n: { type: 'integer' };
  x: { type: 'number'; description: string };
  on: { type: 'boolean' };
  day: { type: 'date' };
  unit: { values: readonly ['c', 'f'] };
};
holds<
  Equal<
    Variables<'a://{n}/{x*}/{+unit}{?on,day}', {}, Params>,
    { n: number; x: number[]; unit: 'c' | 'f'; on?: boolean; day?: string }
  >
>();

// Schemas: the output of the schema. It is asked for a missing value too, so that it can have a default.
const days = z.coerce.number().int().default(3);
const city = v.picklist(['tokyo', 'paris']);
const port = type('string.integer.parse');
const tags = z.array(z.coerce.number()).optional();
type Schemas = { days: typeof days; city: typeof city; port: typeof port; tags: typeof tags };
holds<
  Equal<
    Variables<'a://{city}/{port}{?days,tags*,other}', {}, Schemas>,
    { city: 'tokyo' | 'paris'; port: number; days: number; tags?: number[] | undefined; other?: string }
  >
>();

// Expansion takes numbers, lists and records, and no name that the template does not have.
const values: Expandable<'a://{x}{?y*}'> = { x: 1, y: ['a', 2] };
// @ts-expect-error: there is no variable `z`
const unknown: Expandable<'a://{x}{?y*}'> = { z: 1 };
// @ts-expect-error: a value is a text, a number, a bigint, a list or a record of them
const odd: Expandable<'a://{x}'> = { x: true };
void [values, unknown, odd];

// One variable needs no name.
const plain: Listed<'a://{x}'>[] = ['a', 1, { x: 'a' }];
// @ts-expect-error: which of the two is it?
const ambiguous: Listed<'a://{x}/{y}'> = 'a';
void [plain, ambiguous];

// @ts-expect-error: these tests can fail
holds<Equal<Variables<'a://{x}'>, { x: number }>>();

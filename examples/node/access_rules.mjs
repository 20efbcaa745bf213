// Notes of teams, of which a policy file says who may see what.
//
// team://{team}/plan          what a team is up to
// team://{team}/notes/{name}  a note; completes the names that may be seen
import { fileURLToPath } from 'node:url';
import { ResourceNotFoundError, ResourceServer } from 'mcp-resources';

const POLICY = fileURLToPath(new URL('../data/guard.yaml', import.meta.url));
const NOTES = { launch: 'On Tuesday.', retrospective: 'More tea.', salaries: 'Not for everybody.' };

const server = new ResourceServer({ name: 'team', version: '1.0.0' }, { guard: POLICY });

server.resource('team://{team}/plan', { description: 'What a team is up to.' }, ({ team }) => `The plan of ${team}.`);

server.resource(
  'team://{team}/notes/{name}',
  {
    description: 'A note of a team.',
    complete: { name: (value) => Object.keys(NOTES).filter((name) => name.startsWith(value)) },
  },
  ({ team, name }) => {
    if (!Object.hasOwn(NOTES, name)) throw new ResourceNotFoundError();
    return `${team}: ${NOTES[name]}`;
  },
);

await server.run();

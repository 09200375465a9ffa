import tseslint from 'typescript-eslint';

// Imports go only downwards: base <- data <- render <- widgets <- views <- app. The state that
// views share (state/) is between data and widgets. Only tests import testing/.
const layers = ['base', 'data', 'state', 'render', 'widgets', 'views', 'app'];
const above = (layer) => layers.slice(layers.indexOf(layer) + 1).map((name) => `**/${name}/**`);
const without = (group) => ({ 'no-restricted-imports': ['error', { patterns: group.length > 0 ? [{ group }] : [] }] });

export default tseslint.config(
  { ignores: ['dist', 'node_modules'] },
  ...tseslint.configs.strictTypeChecked,
  { languageOptions: { parserOptions: { projectService: true } } },
  {
    files: ['**/*.ts', '**/*.tsx'],
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-non-null-assertion': 'off', // needed for indexed reads in loops over columns
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
  ...layers.map((layer) => ({ files: [`src/${layer}/**`], rules: without(above(layer)) })),
  ...layers.map((layer) => ({ files: [`src/${layer}/**`], ignores: ['**/*_test.ts'], rules: without([...above(layer), '**/testing/**']) })),
  { files: ['**/*.js'], ...tseslint.configs.disableTypeChecked },
);

import { render } from 'preact';
import { listenToKeys } from './app/keys';
import { openSource } from './app/open_source';
import { applyTheme, Page } from './app/page';
import { Shell } from './app/shell';
import { installTestHooks } from './app/test_hooks';
import { messageOf } from './data/data_source';
import { Failed } from './widgets/states';
import './styles.css';
import './styles/views.css';

const root = document.getElementById('app')!;
try {
  const page = new Page(await openSource());
  applyTheme(page.store.get().theme);
  listenToKeys(page.commands);
  installTestHooks(page);
  render(<Shell page={page} />, root);
} catch (error) {
  render(<Failed message={messageOf(error)} />, root);
}

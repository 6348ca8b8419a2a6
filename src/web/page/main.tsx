import { render } from 'preact';
import { Page } from './parts/page.tsx';
import { begin } from './state.ts';

const root = document.getElementById('page');
if (root === null) throw new Error('The document has no #page.');
render(<Page />, root);
void begin();

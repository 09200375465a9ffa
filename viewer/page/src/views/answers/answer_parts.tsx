// The parts of an answer's page: what is known of each cause beside charts, notes, and tables whose
// numbers are links.

import { Fragment, type ComponentChildren } from 'preact';
import { fileOf } from '../../state/scope';
import { LayersChart } from '../../widgets/layers_chart';
import { StackedBar } from '../../widgets/stacked_bar';
import { TrendChart } from '../../widgets/trend_chart';
import type { ViewProps } from '../view';
import { MemoryChart } from './memory_chart';
import type { Card, Cell, Chart, Link, Page, Section } from './page';

/** How links of a page are followed: in this page, or by their address in another tab. */
export interface Links {
  readonly go: (link: Link) => void;
  readonly href: (link: Link) => string;
}

interface LinkToProps {
  readonly link: Link | null;
  readonly links: Links;
  readonly title?: string;
  readonly children: ComponentChildren;
}

/** Text that leads to blocks; only text without a link. */
export function LinkTo({ link, links, title = '', children }: LinkToProps) {
  if (link === null) return <span title={title}>{children}</span>;
  return (
    <a
      class="link" href={links.href(link)} title={title}
      onClick={(event) => {
        // The browser opens other tabs and windows itself.
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        links.go(link);
      }}
    >
      {children}
    </a>
  );
}

function Value({ cell, links }: { readonly cell: Cell; readonly links: Links }) {
  // Settings are long words, which may be broken after their names.
  const [first, ...more] = cell.text.split(/(?<==)/);
  return (
    <LinkTo link={cell.link} links={links} title={cell.title}>
      {first}
      {more.map((part, i) => <Fragment key={i}><wbr />{part}</Fragment>)}
    </LinkTo>
  );
}

export function Facts({ facts, links }: { readonly facts: Page['facts']; readonly links: Links }) {
  if (facts.length === 0) return null;
  return (
    <dl class="facts">
      {facts.map(([name, cell]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Value cell={cell} links={links} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface PageBodyProps {
  readonly page: Page;
  readonly links: Links;
  readonly view: Pick<ViewProps, 'state' | 'source'>; // charts may show what the answer does not contain
  readonly lead?: ComponentChildren; // above the charts
}

/**
 * Shows what follows the headline of an answer or a comparison: notes, charts with rows and causes
 * beside them, and further rows, in two columns if there is room.
 */
export function PageBody({ page, links, view, lead }: PageBodyProps) {
  const { notes, charts, cards, sections } = page;
  const tables = (place: Section['place']): ComponentChildren[] =>
    sections.filter((section) => section.place === place).map((section) => <SectionTable key={section.title} section={section} links={links} />);
  const [under, beside] = [tables('under'), tables('beside')];
  return (
    <>
      <Notes notes={notes} />
      <div class="answer-body">
        {(charts.length + under.length > 0 || lead !== undefined) && (
          <div class="answer-column">
            {lead}
            {charts.map((chart, i) => (
              <ChartOf key={i} chart={chart} links={links} view={view} />
            ))}
            {under}
          </div>
        )}
        {beside.length + cards.length > 0 && (
          <div class="answer-column">
            {cards.map((card) => (
              <CauseCard key={card.title.text} card={card} links={links} />
            ))}
            {beside}
          </div>
        )}
        {tables(undefined)}
        {tables('wide')}
      </div>
    </>
  );
}

export function Notes({ notes }: { readonly notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

function ChartOf({ chart, links, view }: { readonly chart: Chart; readonly links: Links; readonly view: PageBodyProps['view'] }) {
  switch (chart.kind) {
    case 'trend':
      return <ChartBox title={chart.trend.title}><TrendChart trend={chart.trend} /></ChartBox>;
    case 'layers':
      return <ChartBox title={chart.title}><LayersChart title={chart.title} layers={chart.layers} moments={chart.moments} axis="time" /></ChartBox>;
    case 'memory': {
      const file = fileOf(view.state);
      const lanes = file?.lanes.filter(({ device }) => device === chart.device) ?? [];
      const lane = lanes.find(({ heap }) => heap === 'pytorch') ?? lanes[0];
      return file === null || lane === undefined ? null : <ChartBox title={chart.title}><MemoryChart {...view} title={chart.title} file={file} lane={lane} withDriver /></ChartBox>;
    }
    case 'bar':
      return (
        <ChartBox title={chart.title}>
          <StackedBar
            title={chart.title} parts={chart.parts} marks={chart.marks}
            nameOf={(part) => <LinkTo link={part.link} links={links}>{part.name}</LinkTo>}
          />
        </ChartBox>
      );
  }
}

function ChartBox({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class="chart-box" role="group" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </div>
  );
}

function CauseCard({ card, links }: { readonly card: Card; readonly links: Links }) {
  return (
    <section class="card" aria-label={card.title.text}>
      <h3>
        <Value cell={card.title} links={links} />
      </h3>
      <dl>
        {card.lines.map(({ name, cell, isCode }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{isCode ? <code>{cell.text}</code> : <Value cell={cell} links={links} />}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function SectionTable({ section, links }: { readonly section: Section; readonly links: Links }) {
  return (
    <section class={section.place === 'wide' ? 'answer-section wide' : 'answer-section'} aria-label={section.title}>
      <h3>{section.title}</h3>
      {section.note !== '' && <p class="muted">{section.note}</p>}
      <div class="scroll-x" tabIndex={0} role="group" aria-label={`${section.title}: table`}>
        <table>
          <thead>
            <tr>
              {section.columns.map((column) => (
                <th key={column.title} scope="col" class={column.numeric ? 'numeric' : ''}>
                  {column.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {section.rows.map((row, r) => (
              <tr key={r} class={row[0]?.text.startsWith('= ') === true ? 'sum' : ''}>
                {row.map((cell, c) => (
                  <td key={c} class={section.columns[c]?.numeric === true ? 'numeric' : ''}>
                    <Value cell={cell} links={links} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

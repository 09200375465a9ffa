// The overview: what is wrong with the recording, or that nothing is; what the peak consists of;
// the steps; what was recorded, and how.

import { formatBytes } from '../../base/format_bytes';
import type { Ranks } from '../../data/protocol';
import { fileOf, laneOf, titleOfFile } from '../../state/scope';
import { scaleOf, StackedBar } from '../../widgets/stacked_bar';
import { Failed, Loading } from '../../widgets/states';
import { LinkTo, SectionTable, type Links } from '../answers/answer_parts';
import { linksOf } from '../answers/answer_view';
import type { Finding } from '../answers/findings';
import { MemoryChart } from '../answers/memory_chart';
import { NO_LINK } from '../answers/page';
import { isJob, useRanks } from '../ranks/use_ranks';
import type { View, ViewProps } from '../view';
import { overviewOf, type Headroom, type Overview, type Peak } from './overview';
import { runFacts } from './run_facts';

const PAGE_TITLES: Readonly<Record<string, string>> = { oom: 'Out of memory', leaks: 'Leaks', ledger: 'Ledger', frag: 'Fragmentation' };

function OverviewView(props: ViewProps) {
  const { state, answers } = props;
  const file = fileOf(state);
  const ranks = useRanks(props, isJob(state)).answer;
  if (file === null) return null;
  const lane = laneOf(state);
  const overview = overviewOf(answers, file);
  const links = linksOf(props);
  const progress = state.progress?.files.find((each) => each.file === state.file);
  const isReady = progress?.state === 'ready';
  const isWaiting = isReady && answers.failure === '' && overview.missing.length > 0;
  return (
    <section class="view answer-view" aria-label="Overview">
      <article class="answer overview" aria-busy={isWaiting}>
        {answers.failure !== '' && <Failed message={answers.failure} />}
        {ranks !== null && <RanksVerdict ranks={ranks} links={links} />}
        <Verdict overview={overview} name={isJob(state) ? titleOfFile(file) : ''} links={links} />
        {!isReady && progress !== undefined && progress.state !== 'failed' && <Loading what={`The recording is still being read: ${progress.what}. The timeline shows what is known.`} />}
        {isWaiting && <Loading what="Looking for what is wrong…" />}
        <div class="overview-parts">
          <div class="peaks">{overview.peaks.map((peak) => <PeakOf key={peak.title} peak={peak} links={links} />)}</div>
          <div class="overview-rest">
            <section class="answer-section" aria-label="The run">
              <h3>The run</h3>
              <dl class="run-facts">
                {runFacts(file, answers.of.report?.json).map(([name, value]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                  </div>
                ))}
              </dl>
            </section>
            {lane !== null && (
              <section class="answer-section" aria-label="Over time">
                <h3><LinkTo link={NO_LINK} links={links}>{`${lane.label} over time`}</LinkTo></h3>
                <MemoryChart source={props.source} title={`${lane.label} over time`} file={file} lane={lane} withDriver={false} />
              </section>
            )}
          </div>
        </div>
      </article>
    </section>
  );
}

// A job is not in order because one of its ranks is.
function RanksVerdict({ ranks, links }: { readonly ranks: Ranks; readonly links: Links }) {
  if (ranks.headline === '') return null;
  return (
    <section class="verdict" aria-label="All recordings">
      <div class={`problem ${ranks.rows.some((row) => row.differs) ? 'bad' : 'calm'}`}>
        <h2>{ranks.headline}</h2>
        <p class="problem-links"><LinkTo link={{ ...NO_LINK, view: 'ranks' }} links={links}>Compare the ranks</LinkTo></p>
      </div>
    </section>
  );
}

/** `name`: that of the recording if it is one of a job's. */
function Verdict({ overview, name, links }: { readonly overview: Overview; readonly name: string; readonly links: Links }) {
  const { problems, checked, missing, headroom } = overview;
  const isComplete = missing.length === 0;
  return (
    <section class="verdict" aria-label="Verdict">
      {isComplete && problems.length === 0 && (
        <div class="problem calm">
          <h2>{checked.every(({ mood }) => mood === 'calm') ? 'Nothing is wrong' : 'Nothing wrong was found'}{name === '' ? '' : ` in ${name}`}{headroom === null ? '.' : `: ${headroomWords(headroom)}.`}</h2>
          {headroom !== null && <p class="muted">{headroomDetails(headroom)}</p>}
        </div>
      )}
      {problems.map((finding) => <Problem key={finding.name} finding={finding} links={links} />)}
      {isComplete && problems.length > 0 && headroom !== null && <p class="muted">{`There were ${headroomWords(headroom)}: ${headroomDetails(headroom)}`}</p>}
      {checked.length > 0 && (
        <ul class="checked" aria-label="Checked">
          {checked.map(({ name, view, mood, sentence, moment }) => (
            <li key={name}>
              <span class={`mood ${mood}`} aria-hidden="true">{mood === 'calm' ? '✓' : '?'}</span>
              <span class="checked-name"><LinkTo link={{ ...NO_LINK, view }} links={links}>{PAGE_TITLES[name] ?? name}</LinkTo></span>
              <span>
                {sentence}
                {moment !== null && <> <LinkTo link={moment} links={links}>Show the moment</LinkTo></>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Problem({ finding, links }: { readonly finding: Finding; readonly links: Links }) {
  const { sentence, fix, moment, view, name } = finding;
  return (
    <div class="problem bad">
      <h2>{sentence}</h2>
      {fix !== '' && <p>{name === 'leaks' ? 'Fix' : 'What helps'}: {fix}</p>}
      <p class="problem-links">
        <LinkTo link={{ ...NO_LINK, view }} links={links}>{`Why: ${PAGE_TITLES[name] ?? name}`}</LinkTo>
        {moment !== null && <LinkTo link={moment} links={links}>{moment.view === 'segments' ? 'Show the segments at that moment' : 'Show the moment on the timeline'}</LinkTo>}
      </p>
    </div>
  );
}

function headroomWords({ device, bytes }: Headroom): string {
  return `${formatBytes(bytes)} of headroom on GPU ${device}`;
}

function headroomDetails({ capacity, most, basis }: Headroom): string {
  return `${formatBytes(capacity)} minus ${basis}, ${formatBytes(most)}.`;
}

function PeakOf({ peak, links }: { readonly peak: Peak; readonly links: Links }) {
  const scale = scaleOf(peak.parts, peak.marks);
  return (
    <section class="answer-section peak" aria-label={peak.title}>
      <h3><LinkTo link={peak.at} links={links}>{peak.title}</LinkTo></h3>
      <StackedBar
        title={peak.title} parts={peak.parts} marks={peak.marks} scale={scale}
        nameOf={(part) => <LinkTo link={part.link} links={links}>{part.name}</LinkTo>}
      />
      {peak.stepParts.length > 0 && (
        <>
          <h3>What stays between steps, and what a step adds</h3>
          <StackedBar
            title="Floor and variable part" parts={peak.stepParts} marks={[]} scale={{ ...scale, near: [], far: [] }}
            wordsOf={(part) => peak.stepWords[part.name] ?? ''}
          />
        </>
      )}
      {peak.phases !== null && <SectionTable section={peak.phases} links={links} />}
      {peak.allocators !== null && <SectionTable section={peak.allocators} links={links} />}
    </section>
  );
}

export const OVERVIEW: View = { title: 'Overview', component: OverviewView };

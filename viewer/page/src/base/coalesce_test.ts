import { describe, expect, it } from 'vitest';
import { Coalesce } from './coalesce';
import { News } from './news';

describe('coalescing', () => {
  it('asks one more time for all requests that came while it asked', async () => {
    const answers: (() => void)[] = [];
    const coalesce = new Coalesce(() => new Promise((resolve) => answers.push(resolve)));
    coalesce.want();
    for (let i = 0; i < 5; ++i) coalesce.want();
    expect(answers.length).toBe(1);
    answers[0]!();
    await Promise.resolve();
    await Promise.resolve();
    expect(answers.length).toBe(2);
    answers[1]!();
    await Promise.resolve();
    await Promise.resolve();
    expect(answers.length).toBe(2);
  });

  it('asks no more after it was stopped', async () => {
    let asked = 0;
    const coalesce = new Coalesce(() => {
      ++asked;
      return Promise.resolve();
    });
    coalesce.want();
    coalesce.want();
    coalesce.stop();
    await Promise.resolve();
    await Promise.resolve();
    expect(asked).toBe(1);
  });
});

describe('news', () => {
  it('reaches a listener until it unsubscribes', () => {
    const news = new News();
    let heard = 0;
    const end = news.listen(() => ++heard);
    news.notify();
    end();
    news.notify();
    expect(heard).toBe(1);
    expect(news.version).toBe(2);
  });
});

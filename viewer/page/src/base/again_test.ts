import { describe, expect, it } from 'vitest';
import { Again } from './again';
import { News } from './news';

describe('coalescing', () => {
  it('asks one more time for all requests that came while it asked', async () => {
    const answers: (() => void)[] = [];
    const again = new Again(() => new Promise((resolve) => answers.push(resolve)));
    again.want();
    for (let i = 0; i < 5; ++i) again.want();
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
    const again = new Again(() => {
      ++asked;
      return Promise.resolve();
    });
    again.want();
    again.want();
    again.stop();
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
    news.tell();
    end();
    news.tell();
    expect(heard).toBe(1);
    expect(news.version).toBe(2);
  });
});

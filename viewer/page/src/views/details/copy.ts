// Into the clipboard, also where a browser has no clipboard for pages of that kind.

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'visually-hidden';
  document.body.append(area);
  area.select();
  // The one way that is left there, however old.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isDone = document.execCommand('copy');
  area.remove();
  return isDone;
}

// Copies text to the clipboard, also if the browser gives the page no clipboard API.

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
  // Deprecated, but the only other way.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const isDone = document.execCommand('copy');
  area.remove();
  return isDone;
}

/**
 * Stands where xterm.js makes a `<style>`, which the content policy forbids: text that is set on it becomes a stylesheet
 * made by script, which the policy allows. The build puts it there.
 */
export function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = document.createElement('template');
  Object.defineProperty(element, 'textContent', {
    set: (text: string) => {
      sheet.replaceSync(text);
    },
  });
  document.adoptedStyleSheets.push(sheet);
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
  };
  return element;
}

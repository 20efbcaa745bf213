// Tables and code that scroll can be reached by keyboard, and each part of the navigation has a name of its own. The theme adds
// parts later, so this looks again.
const mend = () => {
  for (const box of document.querySelectorAll('.md-typeset__scrollwrap, .md-typeset pre > code')) box.tabIndex = 0;
  document.querySelectorAll('.md-code__nav, .md-nav--secondary .md-nav').forEach((part, at) => {
    if (part.dataset.named) return;
    part.dataset.named = 'yes';
    part.setAttribute('aria-label', `${part.getAttribute('aria-label') ?? 'Code'} (${at + 1})`);
  });
};
new MutationObserver(mend).observe(document.documentElement, { childList: true, subtree: true });
mend();

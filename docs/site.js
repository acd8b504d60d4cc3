// The theme adds the landmarks of code blocks without names, and leaves code blocks and tables out of the tab
// order, so that a keyboard could not scroll them.
const complete = () => {
  for (const nav of document.querySelectorAll(".md-code__nav:not([aria-label])")) {
    nav.setAttribute("aria-label", `Code block ${nav.parentElement.id.replace("__code_", "")}`);
  }
  const scrollable = "pre > code:not([tabindex]), .md-typeset__scrollwrap:not([tabindex])";
  for (const element of document.querySelectorAll(scrollable)) element.tabIndex = 0;
};
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true, attributeFilter: ["tabindex"] });
complete();

const DATA = JSON.parse(document.getElementById("data").textContent);

const at = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

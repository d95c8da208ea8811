// Sets the colours that the person chose before anything is painted; without a
// choice the system's hold. It runs in the head, so it is no module.
{
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

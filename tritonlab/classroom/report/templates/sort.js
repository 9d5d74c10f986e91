for (const table of document.querySelectorAll('table.sorts')) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement('button');
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const order = head.ariaSort === 'ascending' ? -1 : 1;
      for (const other of table.tHead.rows[0].cells) other.ariaSort = 'none';
      head.ariaSort = order === 1 ? 'ascending' : 'descending';
      const key = row => {
        const text = row.cells[column].textContent.trim(), number = text.match(/-?\d+(\.\d+)?/);
        return [head.dataset.text === undefined && number ? Number(number[0]) : -Infinity, text];
      };
      const rows = [...body.rows].map(row => [key(row), row]);
      rows.sort(([a], [b]) => order * ((a[0] === b[0] ? 0 : a[0] - b[0]) || a[1].localeCompare(b[1])));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

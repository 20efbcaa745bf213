CREATE TABLE orders (day TEXT NOT NULL, region TEXT NOT NULL, revenue REAL NOT NULL);
INSERT INTO orders (day, region, revenue) VALUES
  ('2026-07-01', 'Tokyo', 1200.50), ('2026-07-01', 'Osaka', 310.25), ('2026-07-01', 'Tokyo', 89.00),
  ('2026-07-02', 'Osaka', 740.00), ('2026-07-02', 'Sapporo', 455.75),
  ('2026-07-03', 'Tokyo', 98.20), ('2026-07-03', 'Tokyo', 1430.00), ('2026-07-03', 'Sapporo', 12.80),
  ('2026-07-03', 'Osaka', 600.00);
